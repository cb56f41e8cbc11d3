"""Rows of datasets: files to records (one dict a row), records to typed rows, one module a shape."""
