/** A certificate for the demo's receiver, created at startup and never stored. */
import "reflect-metadata"
import { BasicConstraintsExtension, PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509"

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const
const HOUR = 3_600_000

/** Certificates of the receiver and its CA, in PEM. */
export interface Certificate {
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

const keyPair = () => crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])

/** A new CA and its certificate for `localhost` and 127.0.0.1, valid for 30 days. */
export const make = async (): Promise<Certificate> => {
  const [root, own] = [await keyPair(), await keyPair()]
  const validity = { notBefore: new Date(Date.now() - HOUR), notAfter: new Date(Date.now() + 30 * 24 * HOUR) }
  const authority = await X509CertificateGenerator.createSelfSigned({
    ...validity,
    name: "CN=Custody demo authority",
    serialNumber: "01",
    keys: root,
    signingAlgorithm: algorithm,
    extensions: [new BasicConstraintsExtension(true, 0, true)]
  })
  const certificate = await X509CertificateGenerator.create({
    ...validity,
    subject: "CN=localhost",
    issuer: authority.subject,
    serialNumber: "02",
    publicKey: own.publicKey,
    signingKey: root.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new SubjectAlternativeNameExtension([
        { type: "dns", value: "localhost" },
        { type: "ip", value: "127.0.0.1" }
      ])
    ]
  })
  return {
    authority: authority.toString("pem"),
    certificate: certificate.toString("pem"),
    key: PemConverter.encode(await crypto.subtle.exportKey("pkcs8", own.privateKey), PemConverter.PrivateKeyTag)
  }
}
