#!/usr/bin/env bash
# Makes the certificates of the tests of TLS anew: an authority and what it signs, a receiver, two APIs and a caller; a
# stranger that another authority signs; and receivers that sign themselves, of which one has expired and one is not yet
# valid. They are valid for a hundred years and worth nothing outside of tests.
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

# itself NAME FROM UNTIL: a receiver that is its own authority, valid between two times
itself() {
  openssl req "${curve[@]}" -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
  : >itself.index
  printf '%s\n' '[ca]' 'default_ca=itself' '[itself]' 'database=itself.index' 'new_certs_dir=.' 'rand_serial=yes' \
    'default_md=sha256' 'policy=any' 'x509_extensions=extensions' '[any]' 'commonName=supplied' '[extensions]' \
    'subjectAltName=DNS:shop.example' 'basicConstraints=critical,CA:TRUE' |
    openssl ca -batch -notext -config /dev/stdin -selfsign -keyfile "$1.key" -in "$1.csr" -startdate "$2" -enddate "$3" -out "$1.pem"
  rm -f itself.index*
}

itself itself 20200101000000Z 21200101000000Z
itself expired 20200101000000Z 20210101000000Z
itself early 21100101000000Z 21200101000000Z
find . -name '[0-9A-F]*.pem' -delete
rm -f ./*.csr ./*.srl authority.key other.key
