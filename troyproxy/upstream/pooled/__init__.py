"""A pooled HTTP/1.1 client on asyncio protocols and httptools: what carries most requests.

From the bottom up: `prelude` and `parser` make one response of bytes, `address` and `heads` make bytes of a request,
all without I/O; `connection` and `response` are one exchange; `opening` is DNS, TCP and TLS; `pool` keeps the slots and
connections of one provider; `adapter` is the `ports.Upstream`. It speaks to origins only: a proxy is the httpx
adapter's affair.
"""
