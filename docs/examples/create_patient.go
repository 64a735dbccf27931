// create_patient.go
package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var repeat = map[int]bool{408: true, 429: true, 500: true, 502: true, 503: true, 504: true}

// Don't follow redirects with a patient's data.
var client = &http.Client{
	Timeout:       15 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

type answer struct {
	status int
	header http.Header
	text   []byte
}

func try(key string, body []byte, idempotencyKey string) (*answer, error) {
	request, err := http.NewRequest("POST", os.Getenv("INTAKE_URL")+"/patients", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", idempotencyKey)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return &answer{response.StatusCode, response.Header, text}, err
}

// The URL or certificate is wrong: retrying won't help.
func isAWrongSetting(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &authority) || errors.As(err, &host) || strings.Contains(err.Error(), "unsupported protocol")
}

// Creates a patient, retrying until the deadline.
func createPatient(key string, body []byte, idempotencyKey string, deadline time.Duration) (*answer, error) {
	end := time.Now().Add(deadline)
	for longestPause := 500 * time.Millisecond; ; longestPause = min(20*time.Second, longestPause*2) {
		var problem string
		var retryAfter time.Duration
		answer, err := try(key, body, idempotencyKey)
		switch {
		case err != nil && isAWrongSetting(err):
			return nil, err
		case err != nil:
			problem = err.Error()
		case !repeat[answer.status]:
			return answer, nil
		default:
			problem = fmt.Sprintf("status %d, X-Request-Id %s", answer.status, answer.header.Get("X-Request-Id"))
			seconds, _ := strconv.Atoi(answer.header.Get("Retry-After"))
			retryAfter = time.Duration(seconds) * time.Second
		}
		pause := retryAfter + time.Duration(rand.Int63n(int64(longestPause)))
		if time.Now().Add(pause).After(end) {
			return nil, fmt.Errorf("not answered in time, try again later with the same key: %s", problem)
		}
		time.Sleep(pause)
	}
}

func min(one, other time.Duration) time.Duration {
	if one < other {
		return one
	}
	return other
}

func main() {
	key := strings.TrimSpace(os.Getenv("INTAKE_KEY"))
	if !regexp.MustCompile(`^[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}$`).MatchString(key) {
		log.Fatal("INTAKE_KEY is not an API key")
	}
	// Both belong in your outbox before the first try.
	body, err := json.Marshal(map[string]string{
		"firstName":   "Dorothy",
		"lastName":    "Vaughan",
		"phoneNumber": "+61491570110",
		"dateOfBirth": "1980-09-20",
	})
	idempotencyKey := "acme-booking-1006"
	if err != nil {
		log.Fatal(err)
	}
	answer, err := createPatient(key, body, idempotencyKey, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	if answer.status != 201 {
		// A 422 names each wrong field.
		log.Fatalf("refused with %d, X-Request-Id %s: %s", answer.status, answer.header.Get("X-Request-Id"), answer.text)
	}
	var created struct{ Data struct{ ID string } }
	if err := json.Unmarshal(answer.text, &created); err != nil {
		log.Fatal(err)
	}
	fmt.Println(created.Data.ID)
}
