/** Hashes and addresses: shortened, copied in full, with a link to a block explorer if one is known. */
import { ExternalLink } from "lucide-react"
import { networkName, short } from "../chains.ts"
import { usePortalContext } from "../data.ts"
import { CopyButton } from "./Copy.tsx"

const kinds = { transaction: ["Hash", "{hash}"], address: ["Address", "{address}"] } as const

export interface OnChainProps {
  readonly is: keyof typeof kinds
  readonly network: string
  readonly text: string
  readonly whole?: boolean
}

export const OnChain = ({ is, network, text, whole = false }: OnChainProps) => {
  const { data: around } = usePortalContext()
  const [what, mark] = kinds[is]
  const page = around?.explorers[network]?.[is]?.replace(mark, encodeURIComponent(text))
  return (
    <span className="id">
      <code title={text}>{whole ? text : short(text, 6, 4)}</code>
      <CopyButton text={text} what={what} />
      {page === undefined ? null : (
        <a
          className="copy"
          href={page}
          target="_blank"
          rel="noreferrer noopener"
          aria-label={`${what} in the block explorer`}
          title="Open in the block explorer"
        >
          <ExternalLink aria-hidden size={14} />
        </a>
      )}
    </span>
  )
}

/** A network by its display name; the API's name is in the title. */
export const Network = ({ name }: { readonly name: string }) => <span title={name}>{networkName(name)}</span>
