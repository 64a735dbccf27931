# create_patient.rb
require "json"
require "net/http"
require "openssl"

REPEAT = [408, 429, 500, 502, 503, 504].freeze

# Creates a patient, retrying until the deadline. Net::HTTP follows no redirects.
def create_patient(address, key, body, idempotency_key, deadline: 60)
  now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  finish = now.call + deadline
  longest_pause = 0.5
  headers = {
    "Authorization" => "Bearer #{key}",
    "Content-Type" => "application/json",
    "Idempotency-Key" => idempotency_key,
  }
  loop do
    retry_after = 0
    begin
      time = [[15, finish - now.call].min, 1].max
      # Net::HTTP would repeat by itself, without a pause.
      options = { use_ssl: address.scheme == "https", open_timeout: time, read_timeout: time, max_retries: 0 }
      answer = Net::HTTP.start(address.host, address.port, **options) do |http|
        http.post("#{address.path}/patients", body, headers)
      end
      return answer unless REPEAT.include?(answer.code.to_i)

      problem = "status #{answer.code}, X-Request-Id #{answer["X-Request-Id"]}"
      retry_after = answer["Retry-After"].to_i
    rescue SystemCallError, IOError, Timeout::Error, SocketError, OpenSSL::SSL::SSLError, Net::ProtocolError => error
      raise if error.message.include?("certificate verify failed") # Retrying won't help.

      problem = error.class.name
    end
    pause = retry_after + rand * longest_pause
    raise "not answered in time, try again later with the same key: #{problem}" if now.call + pause >= finish

    sleep pause
    longest_pause = [20, longest_pause * 2].min
  end
end

address = URI(ENV.fetch("INTAKE_URL"))
abort "INTAKE_URL is not an address" unless address.is_a?(URI::HTTP)
key = ENV.fetch("INTAKE_KEY").strip
abort "INTAKE_KEY is not an API key" unless key.match?(/\A[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}\z/)
patient = { firstName: "Annie", lastName: "Easley", phoneNumber: "+61255501234", dateOfBirth: "1983-04-23" }
# Both belong in your outbox before the first try.
body, idempotency_key = JSON.generate(patient), "acme-booking-1007"
answer = create_patient(address, key, body, idempotency_key)
# A 422 names each wrong field.
abort "refused with #{answer.code}, X-Request-Id #{answer["X-Request-Id"]}: #{answer.body}" unless answer.code == "201"
puts JSON.parse(answer.body)["data"]["id"]
