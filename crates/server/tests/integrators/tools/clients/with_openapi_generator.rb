# Creates a patient with what openapi-generator makes of the document for Ruby, and shows what is wrong with another.
$LOAD_PATH.unshift("openapi-generator/lib")
require "openapi_client"
require "uri"

address = URI(ENV.fetch("INTAKE_URL"))
OpenapiClient.configure do |configuration|
  configuration.server_index = nil
  configuration.scheme = address.scheme
  configuration.host = "#{address.host}:#{address.port}"
  configuration.base_path = address.path
  configuration.access_token = ENV.fetch("INTAKE_KEY")
  configuration.ssl_ca_cert = ENV.fetch("SSL_CERT_FILE")
end
patients = OpenapiClient::PatientsApi.new
patient = OpenapiClient::PatientToCreate.new(
  first_name: "Ada", last_name: "Lovelace", phone_number: "+61491570006", date_of_birth: Date.new(1985, 12, 10), country: "AU"
)
checked = patients.validate_patient(patient, prefer: "handling=strict")
raise "data" unless checked.data.nil?
created = patients.create_patient(patient, idempotency_key: "acme-booking-ruby")
begin
  patients.create_patient(patient.to_hash.merge(phoneNumber: "0491 570 006"))
rescue OpenapiClient::ApiError => refused
  problem = OpenapiClient::Problem.build_from_hash(JSON.parse(refused.response_body, symbolize_names: true))
  puts "#{created.data.id} #{problem.errors[0].path[0]}"
end
