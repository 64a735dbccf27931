-- Sends the requests of a file in turns. Each line is an API key, a tab and a body.
local requests = {}
local at = 0

function init(args)
   for line in io.lines(args[1]) do
      local key, body = line:match("^(%S+)\t(.*)$")
      local headers = {
         ["Authorization"] = "Bearer " .. key,
         ["Content-Type"] = "application/json",
         ["X-Forwarded-Proto"] = "https",
      }
      requests[#requests + 1] = wrk.format("POST", nil, headers, body)
   end
end

function request()
   at = at % #requests + 1
   return requests[at]
end

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format("RESULT %d %d %d %d %d %d\n", summary.requests, summary.duration, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout, latency:percentile(50), latency:percentile(99)))
end
