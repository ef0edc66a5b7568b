"""The use cases: read a call, plan it, walk it, relay the answer, keep the ledger.

It meets the adapters through `ports` only.
"""
