// Package sshsig signs with an SSH key like `ssh-keygen -Y sign`, for `git verify-commit` and
// `ssh-keygen -Y verify`. The format is described in PROTOCOL.sshsig of OpenSSH. It knows nothing
// of commits.
package sshsig

import (
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Git is the namespace of signatures for git.
const Git = "git"

const (
	magic     = "SSHSIG"
	version   = 1
	hash      = "sha512"
	lineWidth = 70
)

// Key is a private key without a passphrase.
type Key struct{ signer ssh.Signer }

// ParseKey parses a private key in a format of ssh-keygen. Its errors do not contain the key.
func ParseKey(pem []byte) (*Key, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	switch {
	case errors.As(err, new(*ssh.PassphraseMissingError)):
		return nil, errors.New("the key has a passphrase: give one without")
	case err != nil:
		return nil, errors.New("that is no private key as ssh-keygen writes it")
	}
	return &Key{signer}, nil
}

// Sign returns the armored signature of a message. namespace says what the signature is for.
func (k *Key) Sign(namespace string, message []byte) (string, error) {
	digest := sha512.Sum512(message)
	signed := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Digest string }{namespace, "", hash, string(digest[:])})...)
	signature, err := k.sign(signed)
	if err != nil {
		return "", fmt.Errorf("sign with the SSH key: %w", err)
	}
	return armor(append([]byte(magic), ssh.Marshal(struct {
		Version                                         uint32
		PublicKey, Namespace, Reserved, Hash, Signature string
	}{version, string(k.signer.PublicKey().Marshal()), namespace, "", hash, string(ssh.Marshal(signature))})...)), nil
}

// sign signs data. For an RSA key it uses SHA-512, because the default is SHA-1, which this format
// forbids.
func (k *Key) sign(data []byte) (*ssh.Signature, error) {
	if able, ok := k.signer.(ssh.AlgorithmSigner); ok && k.signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		return able.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	}
	return k.signer.Sign(rand.Reader, data)
}

// armor returns a signature in base64 between its begin and end lines.
func armor(blob []byte) string {
	var s strings.Builder
	s.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for text := base64.StdEncoding.EncodeToString(blob); text != ""; {
		n := min(lineWidth, len(text))
		s.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	s.WriteString("-----END SSH SIGNATURE-----\n")
	return s.String()
}
