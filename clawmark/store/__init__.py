"""The store: one SQLite file, its schema, and every line of SQL there is.

Nothing above this package knows which database answers. Functions take a connection, and writing ones belong inside
`db.transaction`, so that what a batch produced and the cursor that covers it commit together.
"""
