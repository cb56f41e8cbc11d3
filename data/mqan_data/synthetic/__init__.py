"""Texts made by program, and questions about them: mails, invoices, tables, logs, and what else no dataset has."""
