/** Links along ids: each goes to what is known of whom it names. */
import type { JSX } from 'preact'
import { hrefOf, type Query } from '../address.js'
import { None, Text } from './text.js'

const at = encodeURIComponent

interface RefProps {
  id: string | null | undefined
  path: string
  query?: Query
}

/** A link that says the id in full; a narrow cell cuts it off. */
export const Ref = ({ id, path, query }: RefProps): JSX.Element =>
  id == null ? (
    <None />
  ) : (
    <a class="id" href={hrefOf(path, query)} title={id}>
      <Text value={id} />
    </a>
  )

export const UserRef = ({ id }: { id: string | null | undefined }) => (
  <Ref id={id} path={`/users/${at(id ?? '')}/summary`} />
)
export const ConnectionRef = ({ id }: { id: string }) => <Ref id={id} path={`/connections/${at(id)}`} />
export const ContextRef = ({ id }: { id: string }) => <Ref id={id} path={`/contexts/${at(id)}`} />
export const WindowRef = ({ id }: { id: string | null }) => <Ref id={id} path={`/browser-windows/${at(id ?? '')}`} />
export const NodeRef = ({ id }: { id: string | null }) => <Ref id={id} path="/connections" query={{ node_id: id }} />
export const ScopeRef = ({ id }: { id: string }) => <Ref id={id} path="/delivery/commands" query={{ scope_id: id }} />
export const SiteRef = ({ id }: { id: string }) => <Ref id={id} path={`/sites/${at(id)}`} />
export const SessionRef = ({ id }: { id: string }) => <Ref id={id} path={`/sessions/${at(id)}`} />
export const CallRef = ({ id }: { id: string }) => <Ref id={id} path={`/rpc/pending/${at(id)}`} />
export const StreamRef = ({ id }: { id: string }) => <Ref id={id} path="/history/messages" query={{ stream: id }} />

interface OfUser {
  user_id: string
  client_id: string
}

/** A client is one of one user only. */
export const ClientRef = ({ user_id, client_id }: OfUser) => (
  <Ref id={client_id} path="/connections" query={{ user_id, client_id }} />
)
export const InstanceRef = ({ user_id, client_id, instance_id }: OfUser & { instance_id: string | null }) => (
  <Ref id={instance_id} path={`/rpc/instances/${at(instance_id ?? '')}`} query={{ user_id, client_id }} />
)
export const CommandRef = ({ user_id, client_id, command_id }: OfUser & { command_id: string }) => (
  <Ref id={command_id} path="/delivery/status" query={{ user_id, client_id, command_id }} />
)
export const TaskRef = ({ user_id, task_id }: { user_id: string; task_id: string | null }) => (
  <Ref id={task_id} path={`/workers/tasks/${at(task_id ?? '')}`} query={{ user_id }} />
)
