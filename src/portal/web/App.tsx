/** Routing: which page a path shows, and what is shown before any page. */
import { lazy, Suspense, useEffect } from "react"
import { Navigate, Route, Routes, useLocation } from "react-router"
import type { User } from "../server/PortalApi.ts"
import { HomePage } from "./pages/Home.tsx"
import { NotFoundPage } from "./pages/NotFound.tsx"
import { SecondFactorPage } from "./pages/SecondFactor.tsx"
import { SignInPage } from "./pages/SignIn.tsx"
import { ErrorBoundary } from "./parts/ErrorBoundary.tsx"
import { Failure, Loading } from "./parts/States.tsx"
import { Shell } from "./Shell.tsx"
import { UserProvider, useSession, useSignedInUser } from "./session.ts"

// The first view is one file; every other page is a separate one, loaded when the browser is idle.
const files = {
  Account: () => import("./pages/Account.tsx"),
  AuditLog: () => import("./pages/AuditLog.tsx"),
  BalanceHistory: () => import("./pages/BalanceHistory.tsx"),
  Checkpoints: () => import("./pages/Checkpoints.tsx"),
  Enrolment: () => import("./pages/Enrolment.tsx"),
  Event: () => import("./pages/Event.tsx"),
  EventKinds: () => import("./pages/EventKinds.tsx"),
  Events: () => import("./pages/Events.tsx"),
  Invitation: () => import("./pages/Invitation.tsx"),
  KeyForm: () => import("./pages/KeyForm.tsx"),
  Keys: () => import("./pages/Keys.tsx"),
  Members: () => import("./pages/Members.tsx"),
  PasswordReset: () => import("./pages/PasswordReset.tsx"),
  Search: () => import("./pages/Search.tsx"),
  Statement: () => import("./pages/Statement.tsx"),
  Transaction: () => import("./pages/Transaction.tsx"),
  Vault: () => import("./pages/Vault.tsx"),
  Vaults: () => import("./pages/Vaults.tsx"),
  Webhook: () => import("./pages/Webhook.tsx"),
  WebhookForm: () => import("./pages/WebhookForm.tsx"),
  Webhooks: () => import("./pages/Webhooks.tsx")
}
const AccountPage = lazy(() => files.Account().then(({ AccountPage }) => ({ default: AccountPage })))
const AuditLogPage = lazy(() => files.AuditLog().then(({ AuditLogPage }) => ({ default: AuditLogPage })))
const BalanceHistoryPage = lazy(() => files.BalanceHistory().then(({ BalanceHistoryPage }) => ({ default: BalanceHistoryPage })))
const CheckpointsPage = lazy(() => files.Checkpoints().then(({ CheckpointsPage }) => ({ default: CheckpointsPage })))
const EnrolmentPage = lazy(() => files.Enrolment().then(({ EnrolmentPage }) => ({ default: EnrolmentPage })))
const EventPage = lazy(() => files.Event().then(({ EventPage }) => ({ default: EventPage })))
const EventKindPage = lazy(() => files.EventKinds().then(({ EventKindPage }) => ({ default: EventKindPage })))
const EventKindsPage = lazy(() => files.EventKinds().then(({ EventKindsPage }) => ({ default: EventKindsPage })))
const EventsPage = lazy(() => files.Events().then(({ EventsPage }) => ({ default: EventsPage })))
const InvitationPage = lazy(() => files.Invitation().then(({ InvitationPage }) => ({ default: InvitationPage })))
const KeysPage = lazy(() => files.Keys().then(({ KeysPage }) => ({ default: KeysPage })))
const NewKeyPage = lazy(() => files.KeyForm().then(({ NewKeyPage }) => ({ default: NewKeyPage })))
const EditKeyPage = lazy(() => files.KeyForm().then(({ EditKeyPage }) => ({ default: EditKeyPage })))
const MembersPage = lazy(() => files.Members().then(({ MembersPage }) => ({ default: MembersPage })))
const ForgottenPasswordPage = lazy(() => files.PasswordReset().then(({ ForgottenPasswordPage }) => ({ default: ForgottenPasswordPage })))
const PasswordResetPage = lazy(() => files.PasswordReset().then(({ PasswordResetPage }) => ({ default: PasswordResetPage })))
const SearchPage = lazy(() => files.Search().then(({ SearchPage }) => ({ default: SearchPage })))
const StatementPage = lazy(() => files.Statement().then(({ StatementPage }) => ({ default: StatementPage })))
const TransactionPage = lazy(() => files.Transaction().then(({ TransactionPage }) => ({ default: TransactionPage })))
const VaultPage = lazy(() => files.Vault().then(({ VaultPage }) => ({ default: VaultPage })))
const VaultsPage = lazy(() => files.Vaults().then(({ VaultsPage }) => ({ default: VaultsPage })))
const WebhookPage = lazy(() => files.Webhook().then(({ WebhookPage }) => ({ default: WebhookPage })))
const NewWebhookPage = lazy(() => files.WebhookForm().then(({ NewWebhookPage }) => ({ default: NewWebhookPage })))
const EditWebhookPage = lazy(() => files.WebhookForm().then(({ EditWebhookPage }) => ({ default: EditWebhookPage })))
const WebhooksPage = lazy(() => files.Webhooks().then(({ WebhooksPage }) => ({ default: WebhooksPage })))

const loadAll = () => {
  for (const load of Object.values(files)) load().catch(() => {})
}

/** The pages of somebody who is signed in. No id has an encoded character: one could lead the page to another path of the API. */
const Pages = () => (
  <Routes>
    <Route index element={<Navigate to="/home" replace />} />
    <Route path="sign-in" element={<Navigate to="/home" replace />} />
    <Route path="home" element={<HomePage />} />
    <Route path="search" element={<SearchPage />} />
    <Route path="vaults" element={<VaultsPage />} />
    <Route path="vaults/:id" element={<VaultPage />} />
    <Route path="vaults/:id/balance-history" element={<BalanceHistoryPage />} />
    <Route path="vaults/:id/statements/:date" element={<StatementPage />} />
    <Route path="vaults/:id/transactions/:transactionId" element={<TransactionPage />} />
    <Route path="events" element={<EventsPage />} />
    <Route path="checkpoints" element={<CheckpointsPage />} />
    <Route path="events/kinds" element={<EventKindsPage />} />
    <Route path="events/kinds/:kind" element={<EventKindPage />} />
    <Route path="events/:id" element={<EventPage />} />
    <Route path="webhooks" element={<WebhooksPage />} />
    <Route path="webhooks/new" element={<NewWebhookPage />} />
    <Route path="webhooks/:id" element={<WebhookPage />} />
    <Route path="webhooks/:id/edit" element={<EditWebhookPage />} />
    <Route path="keys" element={<KeysPage />} />
    <Route path="keys/new" element={<NewKeyPage />} />
    <Route path="keys/:id" element={<EditKeyPage />} />
    <Route path="members" element={<MembersPage />} />
    <Route path="audit-log" element={<AuditLogPage />} />
    <Route path="account" element={<AccountPage />} />
    <Route path="*" element={<NotFoundPage />} />
  </Routes>
)

const Inside = ({ user }: { readonly user: User }) => (
  <UserProvider value={user}>
    <Shell>
      <ErrorBoundary>
        <Suspense fallback={<Loading />}>{useLocation().pathname.includes("%") ? <NotFoundPage /> : <Pages />}</Suspense>
      </ErrorBoundary>
    </Shell>
  </UserProvider>
)

/** Pages that need no session. */
const open: Readonly<Record<string, typeof InvitationPage>> = {
  "/invitation": InvitationPage,
  "/forgotten-password": ForgottenPasswordPage,
  "/password-reset": PasswordResetPage
}

/** What to show for a state of the session. */
export const App = () => {
  const { data, error, refetch } = useSession()
  const { ended, user } = useSignedInUser(data)
  const { pathname } = useLocation()
  const here = data !== undefined
  useEffect(() => {
    if (here) setTimeout(loadAll, 300)
  }, [here])
  // A new page starts at the top, as it would without scripts.
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls to the top when the path changes
  useEffect(() => {
    scrollTo(0, 0)
  }, [pathname])
  if (data === undefined) {
    return <main className="signed-out">{error === null ? <Loading /> : <Failure error={error} retry={() => void refetch()} />}</main>
  }
  const Open = open[pathname]
  if (Open !== undefined)
    return (
      <Suspense>
        <Open session={data} />
      </Suspense>
    )
  return (
    <>
      {user === null ? null : (
        <div hidden={ended}>
          <Inside user={user} />
        </div>
      )}
      {data.state === "signed_out" ? <SignInPage session={data} ended={ended ? user : null} /> : null}
      {data.state === "enrolment" ? (
        <Suspense>
          <EnrolmentPage />
        </Suspense>
      ) : null}
      {data.state === "second_factor" ? <SecondFactorPage /> : null}
    </>
  )
}
