//! Creates a patient with what openapi-generator makes of the document for Rust, and shows what is wrong with another.

use openapi::apis::Error;
use openapi::apis::configuration::Configuration;
use openapi::apis::patients_api::{CreatePatientError, create_patient, validate_patient};
use openapi::models::patient_to_create::Country;
use openapi::models::{PatientToCreate, Preference};

fn main() {
    let mut configuration = Configuration::new();
    configuration.base_path = std::env::var("INTAKE_URL").unwrap();
    configuration.bearer_access_token = std::env::var("INTAKE_KEY").ok();
    let [first_name, last_name, phone_number] = ["Ada", "Lovelace", "+61491570006"].map(str::to_owned);
    let birth = "1985-12-10".parse().unwrap();
    let mut patient = PatientToCreate::new(first_name, last_name, phone_number, birth);
    patient.country = Some(Some(Country::Au));
    let strict = Some(Preference::HandlingEqualStrict);
    let checked = validate_patient(&configuration, patient.clone(), None, strict, None).unwrap();
    assert!(checked.data.is_none());
    let created = create_patient(&configuration, patient.clone(), Some("acme-booking-rust"), None, None).unwrap();
    patient.phone_number = "0491 570 006".to_owned();
    let refused = create_patient(&configuration, patient, None, None, None).unwrap_err();
    let Error::ResponseError(refused) = refused else { panic!("{refused}") };
    // Each status has the same problem; the first one fits.
    let Some(CreatePatientError::Status400(problem)) = refused.entity else { panic!("{}", refused.content) };
    println!("{} {}", created.data.id, problem.errors.unwrap()[0].path[0]);
}
