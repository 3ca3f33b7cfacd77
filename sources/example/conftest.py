"""So that a law that fails shows what it compared."""

import pytest

pytest.register_assert_rewrite("clawmark.testing")
