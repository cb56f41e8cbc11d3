"""Why a quotation has no value."""


class NoValueError(ValueError):
    """A quotation has no value of the wanted kind; the message says why, to stand after the quotation."""
