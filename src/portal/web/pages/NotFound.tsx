import { Compass } from "lucide-react"
import { LinkButton } from "../parts/Button.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty } from "../parts/States.tsx"

/** The page for unknown paths. */
export const NotFoundPage = () => (
  <Page title="Not found">
    <Empty icon={Compass} title="This page does not exist">
      <LinkButton to="/home">Go to Home</LinkButton>
    </Empty>
  </Page>
)
