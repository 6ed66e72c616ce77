/** The portal's pages without an id in their path: what navigation, keyboard shortcuts and search lead to. */
import { Activity, House, KeyRound, type LucideIcon, ScrollText, Users, Vault, Webhook } from "lucide-react"
import { useUser } from "./session.ts"

export interface Place {
  readonly to: string
  readonly label: string
  /** Opens it after `g`. */
  readonly letter?: string
  /** Of an entry of the navigation. */
  readonly Icon?: LucideIcon
  readonly ofOwners?: true
}

const places: ReadonlyArray<Place> = [
  { to: "/home", label: "Home", letter: "h", Icon: House },
  { to: "/vaults", label: "Vaults", letter: "v", Icon: Vault },
  { to: "/events", label: "Events", letter: "e", Icon: Activity },
  { to: "/webhooks", label: "Webhooks", letter: "w", Icon: Webhook },
  { to: "/keys", label: "API keys", letter: "k", Icon: KeyRound },
  { to: "/members", label: "Members", letter: "m", Icon: Users, ofOwners: true },
  { to: "/audit-log", label: "Audit log", letter: "l", Icon: ScrollText, ofOwners: true },
  { to: "/account", label: "Account", letter: "a" },
  { to: "/events/kinds", label: "Event kinds" },
  { to: "/checkpoints", label: "Checkpoints" },
  { to: "/webhooks/new", label: "New webhook", ofOwners: true },
  { to: "/keys/new", label: "New API key" }
]

/** The pages that the user may open. */
export const usePlaces = (): ReadonlyArray<Place> => {
  const { isOwner } = useUser()
  return places.filter(({ ofOwners }) => isOwner || ofOwners !== true)
}
