// Verifies a v1a signature with Go's standard library. Input: JSON on standard input.
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	var given struct{ X, ID, Timestamp, Signature, Body string }
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	key, err := base64.RawURLEncoding.DecodeString(given.X)
	if err != nil {
		panic(err)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(given.Signature, "v1a,"))
	if err != nil {
		panic(err)
	}
	if ed25519.Verify(key, []byte(given.ID+"."+given.Timestamp+"."+given.Body), signature) {
		fmt.Println("valid")
	} else {
		fmt.Println("invalid")
	}
}
