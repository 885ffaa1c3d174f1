#!/usr/bin/env bash
# Makes the certificates of the tests of TLS anew: an authority and what it signs, a receiver, two APIs and a caller; and
# a stranger that another authority signs. They are valid for a hundred years and worth nothing outside of tests.
set -euo pipefail
cd "$(dirname "$0")"
days=36500
curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

# authority NAME SUBJECT
authority() {
  openssl req -x509 "${curve[@]}" -days $days -subj "/CN=$2" -addext basicConstraints=critical,CA:TRUE \
    -addext keyUsage=critical,keyCertSign -keyout "$1.key" -out "$1.pem"
}

# leaf NAME SUBJECT EXTENSIONS AUTHORITY
leaf() {
  openssl req "${curve[@]}" -subj "/CN=$2" -keyout "$1.key" -out "$1.csr"
  printf '%b\nbasicConstraints=CA:FALSE\n' "$3" |
    openssl x509 -req -in "$1.csr" -CA "$4.pem" -CAkey "$4.key" -CAcreateserial -days $days -extfile /dev/stdin -out "$1.pem"
}

authority authority "Tests of Ringback"
authority other "Others"
leaf receiver shop.example 'subjectAltName=DNS:shop.example\nextendedKeyUsage=serverAuth' authority
leaf api api 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth' authority
leaf renewed renewed 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth' authority
leaf caller caller 'extendedKeyUsage=clientAuth' authority
leaf stranger stranger 'extendedKeyUsage=clientAuth' other
rm -f ./*.csr ./*.srl authority.key other.key
