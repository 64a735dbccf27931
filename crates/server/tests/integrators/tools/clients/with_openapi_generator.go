// Creates a patient with what openapi-generator makes of the document for Go, and shows what is wrong with another.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	intake "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := intake.NewConfiguration()
	configuration.Servers = intake.ServerConfigurations{{URL: os.Getenv("INTAKE_URL")}}
	patients := intake.NewAPIClient(configuration).PatientsAPI
	context := context.WithValue(context.Background(), intake.ContextAccessToken, os.Getenv("INTAKE_KEY"))

	patient := intake.NewPatientToCreate("Ada", "Lovelace", "+61491570006", "1985-12-10")
	patient.SetCountry("AU")
	checked, _, err := patients.ValidatePatient(context).PatientToCreate(*patient).Prefer(intake.HANDLINGSTRICT).Execute()
	if err != nil || checked.Data != nil {
		log.Fatal(err)
	}
	created, _, err := patients.CreatePatient(context).PatientToCreate(*patient).IdempotencyKey("acme-booking-go").Execute()
	if err != nil {
		log.Fatal(err)
	}
	patient.SetPhoneNumber("0491 570 006")
	_, _, err = patients.CreatePatient(context).PatientToCreate(*patient).Execute()
	problem := err.(*intake.GenericOpenAPIError).Model().(intake.Problem)
	fmt.Println(created.Data.Id, problem.Errors[0].Path[0])
}
