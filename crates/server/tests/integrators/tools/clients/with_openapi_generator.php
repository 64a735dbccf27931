<?php
// Creates a patient with what openapi-generator makes of the document for PHP, and shows what is wrong with another.
require_once '/usr/share/php/GuzzleHttp/autoload.php';
spl_autoload_register(function (string $name) {
    require_once 'openapi-generator/lib/' . strtr(substr($name, strlen('OpenAPI\\Client\\')), '\\', '/') . '.php';
});

use OpenAPI\Client\Model\PatientToCreate;

$configuration = OpenAPI\Client\Configuration::getDefaultConfiguration()
    ->setHost(getenv('INTAKE_URL'))
    ->setAccessToken(getenv('INTAKE_KEY'));
$patients = new OpenAPI\Client\Api\PatientsApi(new GuzzleHttp\Client(['verify' => getenv('SSL_CERT_FILE')]), $configuration);
$patient = new PatientToCreate([
    'first_name' => 'Ada',
    'last_name' => 'Lovelace',
    'phone_number' => '+61491570006',
    'date_of_birth' => new DateTime('1985-12-10'),
    'country' => 'AU',
]);
$checked = $patients->validatePatient($patient, null, 'handling=strict');
assert($checked->getData() === null);
$created = $patients->createPatient($patient, 'acme-booking-php');
try {
    // What breaks a rule is refused before it is sent, unless it is sent as it is.
    $patients->createPatient((object) ['phoneNumber' => '0491 570 006'] );
} catch (OpenAPI\Client\ApiException $refused) {
    echo $created->getData()->getId(), ' ', $refused->getResponseObject()->getErrors()[2]->getPath()[0], "\n";
}
