"""The message sources that ship with clawmark, one package or module a host.

clawmark never imports this package: its entry points under `clawmark.sources` name what is here, exactly as a third
party's package would.
"""
