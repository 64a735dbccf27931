<?php
// create_patient.php
const REPEAT = [0, 408, 429, 500, 502, 503, 504]; // 0: no answer
// The URL or certificate is wrong: retrying won't help.
const WRONG_SETTINGS = [CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_SSL_CACERT, CURLE_SSL_CACERT_BADFILE];

/** Creates a patient, retrying until the deadline. */
function create_patient(string $body, string $idempotency_key, float $deadline = 60): array
{
    $now = fn () => hrtime(true) / 1e9;
    $end = $now() + $deadline;
    for ($longest_pause = 0.5; ; $longest_pause = min(20, $longest_pause * 2)) {
        $retry_after = 0;
        $request_id = '';
        // curl follows no redirects unless asked to.
        $request = curl_init(getenv('INTAKE_URL') . '/patients');
        curl_setopt_array($request, [
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => [
                'Authorization: Bearer ' . trim(getenv('INTAKE_KEY')),
                'Content-Type: application/json',
                "Idempotency-Key: $idempotency_key",
            ],
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT_MS => (int) (1000 * max(1, min(15, $end - $now()))),
            CURLOPT_HEADERFUNCTION => function ($request, $line) use (&$retry_after, &$request_id) {
                if (preg_match('/^Retry-After: *([0-9]+)/i', $line, $found)) {
                    $retry_after = (int) $found[1];
                }
                if (preg_match('/^X-Request-Id: *(\S+)/i', $line, $found)) {
                    $request_id = $found[1];
                }
                return strlen($line);
            },
        ]);
        if (getenv('SSL_CERT_FILE')) {
            // In development only: trust the authority of the service.
            curl_setopt($request, CURLOPT_CAINFO, getenv('SSL_CERT_FILE'));
        }
        $text = curl_exec($request);
        $status = $text === false ? 0 : curl_getinfo($request, CURLINFO_RESPONSE_CODE);
        if (!in_array($status, REPEAT, true)) {
            return [$status, $request_id, $text];
        }
        $problem = $status ? "status $status, X-Request-Id $request_id" : curl_error($request);
        if (in_array(curl_errno($request), WRONG_SETTINGS, true)) {
            throw new RuntimeException($problem);
        }
        $pause = $retry_after + $longest_pause * random_int(0, 1000) / 1000;
        if ($now() + $pause >= $end) {
            throw new RuntimeException("not answered in time, try again later with the same key: $problem");
        }
        usleep((int) (1e6 * $pause));
    }
}

if (!preg_match('/^[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}$/D', trim(getenv('INTAKE_KEY')))) {
    throw new RuntimeException('INTAKE_KEY is not an API key');
}
$patient = [
    'firstName' => 'Katherine',
    'lastName' => 'Johnson',
    'phoneNumber' => '+61491570158',
    'dateOfBirth' => '1988-08-26',
];
// Both belong in your outbox before the first try.
[$body, $idempotency_key] = [json_encode($patient, JSON_THROW_ON_ERROR), 'acme-booking-1004'];
[$status, $request_id, $text] = create_patient($body, $idempotency_key);
if ($status !== 201) {
    // A 422 names each wrong field.
    throw new RuntimeException("refused with $status, X-Request-Id $request_id: $text");
}
echo json_decode($text)->data->id, "\n";
