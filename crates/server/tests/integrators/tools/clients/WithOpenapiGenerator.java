// Creates a patient with what openapi-generator makes of the document for Java, and shows what is wrong with another.
import java.time.LocalDate;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.PatientsApi;
import org.openapitools.client.model.PatientToCreate;
import org.openapitools.client.model.Preference;
import org.openapitools.client.model.Problem;

public class WithOpenapiGenerator {
    public static void main(String[] arguments) throws Exception {
        var client = new ApiClient();
        client.updateBaseUri(System.getenv("INTAKE_URL"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + System.getenv("INTAKE_KEY")));
        var patients = new PatientsApi(client);
        var patient = new PatientToCreate()
            .firstName("Ada")
            .lastName("Lovelace")
            .phoneNumber("+61491570006")
            .dateOfBirth(LocalDate.of(1985, 12, 10))
            .country(PatientToCreate.CountryEnum.AU);
        var checked = patients.validatePatient(patient, null, Preference.fromValue("handling=strict"), null);
        if (checked.getData() != null) throw new IllegalStateException("nothing was created");
        var created = patients.createPatient(patient, "acme-booking-java", null, null);
        try {
            patients.createPatient(patient.phoneNumber("0491 570 006"), null, null, null);
        } catch (ApiException refused) {
            var problem = client.getObjectMapper().readValue(refused.getResponseBody(), Problem.class);
            System.out.println(created.getData().getId() + " " + problem.getErrors().get(0).getPath().get(0));
        }
    }
}
