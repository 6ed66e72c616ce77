/** Which page an address shows, and what has to be done before any is shown. */
import { useEffect } from "react"
import { Navigate, Route, Routes, useLocation } from "react-router"
import { useStanding } from "./data.ts"
import { AccountPage } from "./pages/Account.tsx"
import { EnrolmentPage } from "./pages/Enrolment.tsx"
import { EventPage } from "./pages/Event.tsx"
import { EventsPage } from "./pages/Events.tsx"
import { InvitationPage } from "./pages/Invitation.tsx"
import { EditKeyPage, NewKeyPage } from "./pages/KeyForm.tsx"
import { KeysPage } from "./pages/Keys.tsx"
import { NotFoundPage } from "./pages/NotFound.tsx"
import { SecondFactorPage } from "./pages/SecondFactor.tsx"
import { SignInPage } from "./pages/SignIn.tsx"
import { VaultPage } from "./pages/Vault.tsx"
import { VaultsPage } from "./pages/Vaults.tsx"
import { WebhookPage } from "./pages/Webhook.tsx"
import { EditWebhookPage, NewWebhookPage } from "./pages/WebhookForm.tsx"
import { WebhooksPage } from "./pages/Webhooks.tsx"
import { Failure, Loading } from "./parts/States.tsx"
import { Shell } from "./Shell.tsx"

const Inside = () => (
  <Shell>
    <Routes>
      <Route index element={<Navigate to="/vaults" replace />} />
      <Route path="sign-in" element={<Navigate to="/vaults" replace />} />
      <Route path="vaults" element={<VaultsPage />} />
      <Route path="vaults/:id" element={<VaultPage />} />
      <Route path="events" element={<EventsPage />} />
      <Route path="events/:id" element={<EventPage />} />
      <Route path="webhooks" element={<WebhooksPage />} />
      <Route path="webhooks/new" element={<NewWebhookPage />} />
      <Route path="webhooks/:id" element={<WebhookPage />} />
      <Route path="webhooks/:id/edit" element={<EditWebhookPage />} />
      <Route path="keys" element={<KeysPage />} />
      <Route path="keys/new" element={<NewKeyPage />} />
      <Route path="keys/:id" element={<EditKeyPage />} />
      <Route path="account" element={<AccountPage />} />
      <Route path="*" element={<NotFoundPage />} />
    </Routes>
  </Shell>
)

/** What is shown for where the browser stands. */
export const App = () => {
  const { data, error, refetch } = useStanding()
  const { pathname } = useLocation()
  // A new page begins at its top, as it would without a script.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path is what the scrolling follows
  useEffect(() => {
    scrollTo(0, 0)
  }, [pathname])
  if (data === undefined) {
    return <main className="alone">{error === null ? <Loading /> : <Failure error={error} retry={() => void refetch()} />}</main>
  }
  if (pathname === "/invitation") return <InvitationPage standing={data} />
  if (data.state === "signed_out") return <SignInPage standing={data} />
  if (data.state === "enrolment") return <EnrolmentPage />
  if (data.state === "second_factor") return <SecondFactorPage />
  return <Inside />
}
