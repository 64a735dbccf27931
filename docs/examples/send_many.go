// send_many.go
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const patients = 400

func main() {
	atOnce := 16
	if len(os.Args) > 1 {
		atOnce, _ = strconv.Atoi(os.Args[1])
	}
	// By default only two idle connections to a host are kept.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = atOnce
	client := &http.Client{Transport: transport, Timeout: 15 * time.Second}
	numbers := make(chan int)
	statuses := map[int]int{} // 0: no answer
	var lock sync.Mutex
	var workers sync.WaitGroup
	started := time.Now()
	for worker := 0; worker < atOnce; worker++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for number := range numbers {
				body := fmt.Sprintf(`{"firstName":"Test","lastName":"Patient-%d","phoneNumber":"+61491570006","dateOfBirth":"1985-12-10"}`, number)
				request, _ := http.NewRequest("POST", os.Getenv("INTAKE_URL")+"/patients/validate", strings.NewReader(body))
				request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(os.Getenv("INTAKE_KEY")))
				request.Header.Set("Content-Type", "application/json")
				status := 0
				if response, err := client.Do(request); err == nil {
					io.Copy(io.Discard, response.Body) // Read the body, or the connection isn't reused.
					response.Body.Close()
					status = response.StatusCode
				}
				lock.Lock()
				statuses[status]++
				lock.Unlock()
			}
		}()
	}
	for number := 0; number < patients; number++ {
		numbers <- number
	}
	close(numbers)
	workers.Wait()
	fmt.Printf("%d of %d\n", statuses[200], patients)
	fmt.Fprintf(os.Stderr, "%.0f a second, by status %v\n", patients/time.Since(started).Seconds(), statuses)
}
