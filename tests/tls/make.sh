#!/usr/bin/env bash
# Makes the certificates of the tests of TLS anew: an authority of their own, and a receiver's, for shop.example. They
# are valid for a hundred years and worth nothing outside of tests.
set -euo pipefail
cd "$(dirname "$0")"
days=36500
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days $days -subj "/CN=Tests of Ringback" \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -keyout authority.key -out authority.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=shop.example" -keyout receiver.key -out receiver.csr
printf 'subjectAltName=DNS:shop.example\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n' |
  openssl x509 -req -in receiver.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days $days -extfile /dev/stdin -out receiver.pem
rm -f authority.key authority.srl receiver.csr
