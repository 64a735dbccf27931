// CreatePatient.java
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import javax.net.ssl.SSLHandshakeException;

public class CreatePatient {
    static final Set<Integer> REPEAT = Set.of(408, 429, 500, 502, 503, 504);
    // Don't follow redirects with a patient's data.
    static final HttpClient CLIENT = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .followRedirects(HttpClient.Redirect.NEVER)
        .connectTimeout(Duration.ofSeconds(15))
        .build();

    /** Creates a patient, retrying until the deadline. */
    static HttpResponse<String> createPatient(String key, String body, String idempotencyKey, Duration deadline)
            throws IOException, InterruptedException {
        Instant end = Instant.now().plus(deadline);
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("INTAKE_URL") + "/patients"))
            .header("Authorization", "Bearer " + key)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", idempotencyKey)
            .timeout(Duration.ofSeconds(15))
            .POST(BodyPublishers.ofString(body))
            .build();
        for (long longestPause = 500; ; longestPause = Math.min(20_000, longestPause * 2)) {
            String problem;
            long retryAfter = 0;
            try {
                HttpResponse<String> response = CLIENT.send(request, BodyHandlers.ofString());
                if (!REPEAT.contains(response.statusCode())) {
                    return response;
                }
                problem = "status " + response.statusCode() + ", X-Request-Id " + header(response, "X-Request-Id");
                String seconds = header(response, "Retry-After");
                retryAfter = seconds.matches("[0-9]{1,9}") ? 1000 * Long.parseLong(seconds) : 0;
            } catch (SSLHandshakeException error) {
                throw error; // The certificate: retrying won't help.
            } catch (IOException error) {
                problem = error.toString();
            }
            long pause = retryAfter + ThreadLocalRandom.current().nextLong(longestPause);
            if (Instant.now().plusMillis(pause).isAfter(end)) {
                throw new IOException("not answered in time, try again later with the same key: " + problem);
            }
            Thread.sleep(pause);
        }
    }

    static String header(HttpResponse<?> response, String name) {
        return response.headers().firstValue(name).orElse("");
    }

    public static void main(String[] arguments) throws Exception {
        String key = System.getenv("INTAKE_KEY").strip();
        if (!key.matches("[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}")) {
            throw new IllegalArgumentException("INTAKE_KEY is not an API key");
        }
        // Both belong in your outbox before the first try.
        String body = """
            {"firstName": "Joan", "lastName": "Clarke", "phoneNumber": "+61370101234", "dateOfBirth": "1987-06-24"}
            """;
        String idempotencyKey = "acme-booking-1008";
        HttpResponse<String> response = createPatient(key, body, idempotencyKey, Duration.ofMinutes(1));
        if (response.statusCode() != 201) {
            // A 422 names each wrong field.
            String requestId = header(response, "X-Request-Id");
            throw new IOException("refused with " + response.statusCode() + ", X-Request-Id " + requestId + ": " + response.body());
        }
        System.out.println(response.body());
    }
}
