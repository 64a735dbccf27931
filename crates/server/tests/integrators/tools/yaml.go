// Reads the document as YAML, and prints it as JSON.
package main

import (
	"encoding/json"
	"log"
	"os"

	"gopkg.in/yaml.v3"
)

func main() {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		log.Fatal(err)
	}
	var document map[string]interface{}
	if err := yaml.Unmarshal(text, &document); err != nil {
		log.Fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(document)
}
