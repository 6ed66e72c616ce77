/**
 * URLs by which an attacker could try to direct requests to forbidden addresses, each with the expected response at
 * creation and at update, and public-looking names with private addresses. They are written out or composed by rule, never
 * at random, so that every run tries the same. Decision D-30; reliability T1 to T4.
 */
import { spellings } from "./spellings.ts"

/** A URL that is refused. */
export interface Vector {
  readonly url: string
  /** Which trick it is. */
  readonly trick: string
  /** 400: not a valid URL by its form; 422: it names a forbidden host or port. */
  readonly answer: "400 invalid_body" | "422 url_not_deliverable"
}

/** A public-looking host name, accepted at creation, that resolves to `answers`; nothing may ever be sent to it. */
export interface Name {
  readonly host: string
  readonly trick: string
  /** A and AAAA records together. */
  readonly answers: ReadonlyArray<string>
}

const malformed = (trick: string, urls: ReadonlyArray<string>): ReadonlyArray<Vector> =>
  urls.map((url) => ({ url, trick, answer: "400 invalid_body" }))
const refused = (trick: string, urls: ReadonlyArray<string>): ReadonlyArray<Vector> =>
  urls.map((url) => ({ url, trick, answer: "422 url_not_deliverable" }))

/** Addresses that attackers want: loopback, any address, private networks, the metadata services of clouds. */
export const targets = [
  "127.0.0.1",
  "0.0.0.0",
  "10.0.0.1",
  "172.17.0.1",
  "192.168.1.1",
  "169.254.169.254",
  "169.254.170.2",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16"
]

/** First and last address of every forbidden range. */
export const denied = [
  ...["0.0.0.0 0.255.255.255", "10.0.0.0 10.255.255.255", "100.64.0.0 100.127.255.255", "127.0.0.0 127.255.255.255"],
  ...["169.254.0.0 169.254.255.255", "172.16.0.0 172.31.255.255", "192.0.0.0 192.0.0.255", "192.0.2.0 192.0.2.255"],
  ...["192.31.196.0 192.31.196.255", "192.52.193.0 192.52.193.255", "192.88.99.0 192.88.99.255", "192.168.0.0 192.168.255.255"],
  ...["192.175.48.0 192.175.48.255", "198.18.0.0 198.19.255.255", "198.51.100.0 198.51.100.255", "203.0.113.0 203.0.113.255"],
  ...["224.0.0.0 239.255.255.255", "240.0.0.0 255.255.255.255", ":: ::1", "100:: 100::ffff:ffff:ffff:ffff"],
  ...["5f00:: 5fff::1", "fc00:: fdff:ffff::1", "fe80:: febf:ffff::1", "fec0:: feff:ffff::1", "ff00:: ffff::1", "ff02::1 ff0e::1"],
  ...["2001::1 2001:1ff:ffff::1", "2001:db8:: 2001:db8:ffff::1", "2002:: 2002:ffff::1", "3fff:: 3fff:fff::1"],
  ...["2620:4f:8000:: 2620:4f:8000:ffff::1", "fd00:ec2::254 fd20:ce::254", "4000:: 1fff::1", "8000:: e000::1"]
].flatMap((pair) => pair.split(" "))

const PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "2001:4860:4860::8888"]
const inUrl = (address: string) => (address.includes(":") ? `[${address}]` : address)
const long = (length: number) => `https://hooks.example.com/${"a".repeat(length - "https://hooks.example.com/".length)}`

const literals: ReadonlyArray<Vector> = [
  ...targets.flatMap((address) => spellings(address).flatMap(([trick, host]) => refused(trick, [`https://${host}/`]))),
  ...refused(
    "an address of a forbidden range",
    denied.map((address) => `https://${inUrl(address)}/`)
  ),
  // Also a public address: no certificate can name its owner, and the address may belong to someone else tomorrow.
  ...refused(
    "a public address",
    PUBLIC.map((address) => `https://${inUrl(address)}/`)
  ),
  ...refused("an address with an allowed port", [
    "https://127.0.0.1:443/",
    "https://127.0.0.1:8443/",
    "https://[::1]:8443/",
    "https://0x7f.1:8443/"
  ]),
  ...refused("an address with a path that looks like a host", [
    "https://127.0.0.1/hooks.example.com",
    "https://169.254.169.254/latest/meta-data/iam/security-credentials/",
    "https://2852039166/latest/meta-data/",
    "https://127.0.0.1?hooks.example.com/",
    "https://[::]?@hooks.example.com/"
  ]),
  ...malformed("no address after all", ["https://256.256.256.256/", "https://1.2.3.4.5/", "https://127.0.0.1.1/", "https://0x100000000/"]),
  ...malformed("broken brackets", [
    "https://[::1/",
    "https://::1/",
    "https://[::1]a/",
    "https://[127.0.0.1]/",
    "https://[::ffff:127.0.0.1.]/"
  ]),
  ...malformed("a zone", ["https://[fe80::1%25eth0]/", "https://[fe80::1%eth0]/", "https://[::1%25lo]/"])
]

const authorities: ReadonlyArray<Vector> = [
  ...malformed("a user name that looks like the host", [
    "https://user@hooks.example.com/",
    "https://user:word@hooks.example.com/",
    "https://:word@hooks.example.com/",
    "https://@hooks.example.com/",
    "https://:@hooks.example.com/",
    "https://@@hooks.example.com/",
    "https://hooks.example.com@127.0.0.1/",
    "https://hooks.example.com:443@127.0.0.1/",
    "https://hooks.example.com%2f@127.0.0.1/",
    "https://hooks.example.com%00@127.0.0.1/",
    "https://127.0.0.1@hooks.example.com/",
    "https://127.0.0.1:443@hooks.example.com/",
    "https://a@b@169.254.169.254/",
    "https://hooks.example.com@[::1]/"
  ]),
  ...malformed("a fragment", [
    "https://hooks.example.com/#a",
    "https://hooks.example.com/#",
    "https://127.0.0.1#@hooks.example.com/",
    "https://hooks.example.com#@127.0.0.1/"
  ]),
  ...malformed("a backslash", [
    "https:\\\\hooks.example.com\\",
    "https://hooks.example.com\\@127.0.0.1/",
    "https://127.0.0.1\\@hooks.example.com/",
    "https://127.0.0.1\\.hooks.example.com/",
    "https:/\\127.0.0.1/"
  ]),
  ...malformed("slashes too few or too many", [
    "https:hooks.example.com/",
    "https:/hooks.example.com/",
    "https:///hooks.example.com/",
    "https:////127.0.0.1/",
    "https:127.0.0.1",
    "https://"
  ]),
  ...malformed("white space, control and invisible characters", [
    " https://hooks.example.com/",
    "https://hooks.example.com/ ",
    "https://hooks.example.com/ a",
    "https://127.0.0.1 .example.com/",
    "https://127.0.0.1%20.example.com/",
    "https://hooks.exa\nmple.com/",
    "ht\ntps://127.0.0.1/",
    "https://hooks.example.com/\t",
    "https://hooks.example.com/\r\nHost: 127.0.0.1",
    "https://hooks.example.com/\u0000",
    "https://127.0.0.1\u0000.example.com/",
    "https://127.0.0.1%00.example.com/",
    "https://hooks.exam\u200bple.com/",
    "https://127.0.0\u200d.1/",
    "https://127.0.0.\u20601/",
    "https://hooks.exam\u00adple.com/",
    "https://local\u00adhost/",
    "https://hooks.example.com/\u202egnp",
    "https://\ufeffhooks.example.com/",
    "https://hooks.example.com\u3000/",
    "https://hooks.example.com\u2028/"
  ]),
  ...malformed("a host that no name server knows", [
    "https://hooks..example.com/",
    "https://.example.com/",
    "https://./",
    "https://-hooks.example.com/",
    "https://hooks-.example.com/",
    `https://${"a".repeat(64)}.example.com/`,
    `https://${"a.".repeat(130)}com/`,
    "https://exa$mple.com/",
    "https://*.example.com/",
    "https://exa%mple.com/",
    "https://hooks.example.com%2f.evil.example/",
    "https://hooks.example.com%23.evil.example/"
  ]),
  ...malformed("a full stop at the end", [
    "https://hooks.example.com./",
    "https://hooks.example.com。/",
    "https://hooks.example.com%2e/",
    "https://localhost./"
  ]),
  ...malformed("too long", [long(2_049), long(10_000)])
]

const others: ReadonlyArray<Vector> = [
  ...malformed("no scheme", [
    "",
    "/",
    "?",
    "hooks.example.com/custody",
    "//hooks.example.com/custody",
    "127.0.0.1",
    "localhost:443",
    "://hooks.example.com/"
  ]),
  ...malformed("another scheme", [
    ...[
      "http://hooks.example.com/",
      "http://hooks.example.com:443/",
      "HTTP://127.0.0.1/",
      "ftp://hooks.example.com/",
      "ws://hooks.example.com/"
    ],
    ...["wss://hooks.example.com/", "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "javascript:alert(1)", "data:text/plain,a"],
    ...["gopher://127.0.0.1:6379/_PING", "dict://127.0.0.1:11211/stats", "ldap://127.0.0.1/", "tftp://127.0.0.1/a", "sftp://127.0.0.1/"],
    ...["jar:https://127.0.0.1!/", "blob:https://hooks.example.com/a", "view-source:https://127.0.0.1/", "unix:/var/run/docker.sock"],
    ...[
      "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
      "httpss://hooks.example.com/",
      "https+a://hooks.example.com/",
      "mailto:a@example.com"
    ]
  ]),
  ...refused("one label", [
    ...[
      "https://localhost/",
      "https://LOCALHOST/",
      "https://LocalHost:8443/",
      "https://ⓛocalhost/",
      "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
      "https://ｌｏｃａｌｈｏｓｔ/"
    ],
    ...[
      "https://𝐥𝐨𝐜𝐚𝐥𝐡𝐨𝐬𝐭/",
      "https://%6c%6f%63%61%6c%68%6f%73%74/",
      "https://metadata/",
      "https://metadata/computeMetadata/v1/",
      "https://postgres:8443/"
    ],
    ...[
      "https://temporal/",
      "https://kubernetes/",
      "https://intranet/",
      "https://com/",
      "https://broadcasthost/",
      "https://ip6-localhost/",
      "https://host/"
    ]
  ]),
  ...refused(
    "a port of something else",
    [
      0, 1, 21, 22, 23, 25, 53, 80, 111, 135, 389, 445, 444, 2375, 3306, 4430, 5432, 6379, 6443, 7233, 8080, 8081, 8444, 9200, 10250, 11211,
      27017, 65535
    ].map((port) => `https://hooks.example.com:${port}/`)
  ),
  ...refused("a port with leading zeros", ["https://hooks.example.com:0080/", "https://hooks.example.com:00022/"]),
  ...malformed("no port", [
    "https://hooks.example.com:65536/",
    "https://hooks.example.com:-1/",
    "https://hooks.example.com:4 43/",
    "https://hooks.example.com:0x1bb/",
    "https://hooks.example.com:443:22/"
  ])
]

/** Every URL that is refused, each once. */
export const vectors: ReadonlyArray<Vector> = [
  ...new Map([...literals, ...authorities, ...others].map((vector) => [vector.url, vector])).values()
]

/** Names that pass the rules for text, because only their addresses show that they are forbidden. */
export const names: ReadonlyArray<Name> = [
  ...[
    ...[
      "localhost.localdomain 127.0.0.1",
      "localtest.example.com 127.0.0.1",
      "127.0.0.1.nip.example 127.0.0.1",
      "127-0-0-1.nip.example 127.0.0.1"
    ],
    ...["metadata.google.internal 169.254.169.254", "instance-data.ec2.internal 169.254.169.254", "metadata.azure.internal 168.63.129.16"],
    ...["kubernetes.default.svc 10.96.0.1", "kubernetes.default.svc.cluster.local 10.96.0.1", "host.docker.internal 192.168.65.254"],
    ...["db.internal.example.com 10.0.0.5", "ip6.example.com ::1", "unique-local.example.com fd00::1", "link-local.example.com fe80::1"]
  ].map((line): Name => {
    const [host = "", address = ""] = line.split(" ")
    return { host, trick: "a name of an internal service", answers: [address] }
  }),
  ...denied.map((address, index) => ({
    host: `range-${index}.example.com`,
    trick: "a name of a forbidden range",
    answers: [address]
  })),
  // Refused as the address that the system would connect to, a reserved IPv6 address; not accepted as the public IPv4 inside it.
  { host: "compatible.example.com", trick: "a public address in the IPv4-compatible form", answers: ["0::8.8.8.8"] },
  { host: "compatible-allowed.example.com", trick: "an allowed address in the IPv4-compatible form", answers: ["0::127.0.9.1"] },
  ...targets.flatMap(
    (address, index): ReadonlyArray<Name> => [
      { host: `mixed-${index}.example.com`, trick: "a public address first, an inside one second", answers: ["8.8.8.8", address] },
      { host: `mapped-${index}.example.com`, trick: "an inside address mapped into IPv6", answers: [`::ffff:${address}`] },
      {
        host: `nat64-${index}.example.com`,
        trick: "an inside address behind NAT64",
        answers: ["2606:4700:4700::1111", `64:ff9b::${address}`]
      }
    ]
  )
]
