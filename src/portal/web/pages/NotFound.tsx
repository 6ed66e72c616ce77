import { Compass } from "lucide-react"
import { LinkButton } from "../parts/Button.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty } from "../parts/States.tsx"

/** An address that shows nothing. */
export const NotFoundPage = () => (
  <Page title="Not found">
    <Empty icon={Compass} title="There is no such page">
      <LinkButton to="/vaults">To the vaults</LinkButton>
    </Empty>
  </Page>
)
