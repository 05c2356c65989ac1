package main

// The authorities of the web's TLS certificates, for an image that has no files but this program. Where the system has its
// own, in its usual place or where SSL_CERT_FILE says, those are used and these are not.
import _ "golang.org/x/crypto/x509roots/fallback"

// The world's time zones, for the same image: policies name theirs.
import _ "time/tzdata"
