"""Requests recorded, written to a trace, and walked again under another policy on a virtual clock."""
