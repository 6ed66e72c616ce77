/** The people of the organization, for its owners: roles, state of their accounts, invitations, and the end of their sessions. */
import { Users } from "lucide-react"
import { Link } from "react-router"
import type { Member } from "../../signIn/Members.ts"
import { post } from "../api.ts"
import { usePortalContext } from "../data.ts"
import { useList } from "../list.ts"
import { Ask } from "../parts/Dialog.tsx"
import { notify } from "../parts/Notices.tsx"
import { Page } from "../parts/Page.tsx"
import { Empty } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Table } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useUser } from "../session.ts"

export const MembersPage = () => {
  const { organization } = useUser()
  const { data: around } = usePortalContext()
  const list = useList("/members", {}, { every: 30_000 })
  return (
    <Page
      title="Members"
      lead={`The people of ${organization.name}. The custody platform adds and deactivates them and gives them their roles.`}
    >
      {around?.sendsMail === false ? (
        <p className="note">
          This service sends no e-mail, so only its operator can invite people: <code>custody users invite user_…</code>
        </p>
      ) : null}
      <Table
        list={list}
        label="Members"
        empty={
          <Empty icon={Users} title="No members">
            <p>People appear here when the custody platform adds them.</p>
          </Empty>
        }
        columns={[
          {
            label: "Name",
            heads: true,
            cell: ({ email, id, name }) => (
              <>
                <span className="name">{name}</span>
                <span className="block under">{email}</span>
                <code className="block under">{id}</code>
              </>
            )
          },
          { label: "Role", cell: (member) => <Role member={member} /> },
          { label: "Second factor", cell: (member) => <Factor member={member} /> },
          {
            label: "Last sign-in",
            cell: ({ id, lastSignInAt }) => (
              <>
                {lastSignInAt === null ? "Never" : <Time at={lastSignInAt} as="ago" />}
                <Link className="block under" to={`/audit-log?actor=${encodeURIComponent(id)}`}>
                  Audit log
                </Link>
              </>
            )
          },
          {
            label: "Actions",
            card: "",
            align: "right",
            cell: (member) => <Actions member={member} mayInvite={around?.sendsMail === true} done={list.refetch} />
          }
        ]}
      />
    </Page>
  )
}

const Role = ({ member: { isOwner, vaults } }: { readonly member: Member }) => (
  <>
    {isOwner ? "Owner" : "Member"}
    <span className="block under">{vaults === 1 ? "Developer on 1 vault" : `Developer on ${vaults} vaults`}</span>
  </>
)

/** What the person can sign in with, or why they cannot. */
const Factor = ({ member }: { readonly member: Member }) => {
  const { hasAccount, hasAuthenticator, invitedUntil, isActive, isLocked, passkeys } = member
  if (!isActive) return <Status tone="idle">Deactivated</Status>
  if (!hasAccount && invitedUntil !== null)
    return (
      <>
        <Status tone="wait">Invited</Status>
        <span className="block under">
          until <Time at={invitedUntil} />
        </span>
      </>
    )
  if (!hasAccount) return <Status tone="idle">No account</Status>
  if (!hasAuthenticator) return <Status tone="wait">Not set up</Status>
  return (
    <>
      {isLocked ? <Status tone="bad">Locked by wrong codes</Status> : <Status tone="good">Authenticator</Status>}
      {passkeys === 0 ? null : <span className="block under">{passkeys === 1 ? "and a passkey" : `and ${passkeys} passkeys`}</span>}
    </>
  )
}

interface ActionsProps {
  readonly member: Member
  readonly mayInvite: boolean
  readonly done: () => Promise<unknown>
}

const Actions = ({ done, mayInvite, member }: ActionsProps) => {
  const { email, hasAccount, id, invitedUntil, isActive, name, sessions } = member
  const user = useUser()
  const invite = async () => {
    await post(`/members/${id}/invite`)
    await done()
    notify(`Invitation sent to ${email}`)
  }
  const end = async () => {
    await post(`/members/${id}/end-sessions`)
    await done()
    notify(`${name} is signed out`)
  }
  if (id === user.id) return <Link to="/account">Your account</Link>
  if (isActive && !hasAccount && mayInvite)
    return (
      <Ask
        label={invitedUntil === null ? "Invite" : "Invite again"}
        title={`Invite ${name}?`}
        text={`${email} gets a link that works once, for 72 hours.${invitedUntil === null ? "" : " The earlier link stops working."}`}
        yes="Send invitation"
        act={invite}
      />
    )
  return sessions === 0 ? null : (
    <Ask
      label="Sign out"
      kind="danger"
      title={`Sign out ${name}?`}
      text={`This ends ${sessions === 1 ? "the session" : `${sessions} sessions`} of ${name} in the portal. They can sign in again, and their API keys keep working.`}
      yes="Sign out"
      danger
      act={end}
    />
  )
}
