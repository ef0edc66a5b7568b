-- The load of one case, for wrk: the same POST again and again; at the end one line of JSON.
-- Its arguments: a file with the body, and the key.

function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.method, wrk.body = "POST", file:read("*a")
  file:close()
  wrk.headers["content-type"] = "application/json"
  wrk.headers["authorization"] = "Bearer " .. args[2]
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "us": %d, "p50_us": %d, "p99_us": %d, "refused": %d, "broken": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
