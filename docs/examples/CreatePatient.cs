// CreatePatient.cs
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Security.Authentication;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

public static class CreatePatient
{
    static readonly HashSet<int> Repeat = new HashSet<int> { 408, 429, 500, 502, 503, 504 };
    // Don't follow redirects with a patient's data. One client for all requests.
    static readonly HttpClient Client =
        new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) { Timeout = TimeSpan.FromSeconds(15) };
    static readonly Random Random = new Random();

    /// <summary>Creates a patient, retrying until the deadline.</summary>
    static async Task<HttpResponseMessage> Create(string key, string body, string idempotencyKey, TimeSpan deadline)
    {
        var clock = Stopwatch.StartNew();
        for (var longestPause = 0.5; ; longestPause = Math.Min(20, longestPause * 2))
        {
            string problem;
            var retryAfter = TimeSpan.Zero;
            var request = new HttpRequestMessage(HttpMethod.Post, Environment.GetEnvironmentVariable("INTAKE_URL") + "/patients");
            request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", key);
            request.Headers.Add("Idempotency-Key", idempotencyKey);
            request.Content = new StringContent(body, Encoding.UTF8, "application/json");
            try
            {
                var response = await Client.SendAsync(request);
                if (!Repeat.Contains((int)response.StatusCode)) return response;
                problem = $"status {(int)response.StatusCode}, X-Request-Id {RequestId(response)}";
                retryAfter = response.Headers.RetryAfter?.Delta ?? TimeSpan.Zero;
            }
            catch (HttpRequestException error) when (IsAboutTheCertificate(error))
            {
                throw; // Retrying won't help.
            }
            catch (Exception error) when (error is HttpRequestException || error is TaskCanceledException)
            {
                problem = error.GetBaseException().Message;
            }
            var pause = retryAfter + TimeSpan.FromSeconds(Random.NextDouble() * longestPause);
            if (clock.Elapsed + pause >= deadline)
                throw new TimeoutException("not answered in time, try again later with the same key: " + problem);
            await Task.Delay(pause);
        }
    }

    static bool IsAboutTheCertificate(Exception error) =>
        error != null && (error is AuthenticationException || IsAboutTheCertificate(error.InnerException));

    static string RequestId(HttpResponseMessage response) =>
        response.Headers.TryGetValues("X-Request-Id", out var values) ? values.First() : "";

    public static void Main() => Run().GetAwaiter().GetResult();

    static async Task Run()
    {
        var key = Environment.GetEnvironmentVariable("INTAKE_KEY").Trim();
        if (!Regex.IsMatch(key, @"^[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}\z"))
            throw new ArgumentException("INTAKE_KEY is not an API key");
        // Both belong in your outbox before the first try.
        var body = "{\"firstName\":\"Ida\",\"lastName\":\"Rhodes\",\"phoneNumber\":\"+61491570006\",\"dateOfBirth\":\"1984-05-15\"}";
        var idempotencyKey = "acme-booking-1009";
        var response = await Create(key, body, idempotencyKey, TimeSpan.FromMinutes(1));
        var text = await response.Content.ReadAsStringAsync();
        if ((int)response.StatusCode != 201)
            // A 422 names each wrong field.
            throw new Exception($"refused with {(int)response.StatusCode}, X-Request-Id {RequestId(response)}: {text}");
        Console.WriteLine(text);
    }
}
