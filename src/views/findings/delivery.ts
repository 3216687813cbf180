/** What delivery's own evidence contradicts: commands, reservations and nodes. */
import { type ClientOfUser, Connection } from '../../contract/connections.js'
import type { RecoveryReason } from '../../contract/delivery.js'
import { DeliveryCommand, DeliveryNode, DeliveryTenant } from '../../contract/delivery.js'
import { addressOf, HEARTBEAT_MS } from '../../contract/delivery-rules.js'
import { PAGE_MAX } from '../../contract/limits.js'
import type { Ask, PageQuery } from '../../contract/page.js'
import { along, type Looking } from './detector.js'
import { holderEvidence } from './disconnected.js'
import { type Evidence, type Finding, type FindingKind, fieldsOf, finding, requestOf } from './finding.js'

const SOURCE = 'delivery'

const isAlive = (node: DeliveryNode) => node.stale !== true && node.reconciliation_loop_alive !== false

/** When a node last reported; of one that does not say, never. */
const instantOf = ({ updated_at }: DeliveryNode) => (updated_at === null ? 0 : Date.parse(updated_at))

/** The living node that reported last, of the first page that has one among those that `counts`. */
async function latestOf(
  looking: Looking,
  counts: (node: DeliveryNode) => boolean = () => true,
): Promise<DeliveryNode | undefined> {
  const list = (page: PageQuery, ask: Ask) => looking.inspectors.delivery.listNodes(page, ask)
  const isMeant = (node: DeliveryNode) => isAlive(node) && counts(node)
  const { records } = await looking.pageWith(SOURCE, { entry: DeliveryNode, list }, PAGE_MAX, isMeant)
  return records.filter(isMeant).sort((a, b) => instantOf(b) - instantOf(a))[0]
}

/** Whether a loop has looked since `instant`: it reports at least this often, and passes before it does. */
const hasPassed = (node: DeliveryNode, instant: string) => instantOf(node) >= Date.parse(instant) + HEARTBEAT_MS

function nodeEvidence(looking: Looking, node: DeliveryNode | undefined): Evidence {
  if (!node) return looking.evidence(SOURCE, '/delivery/nodes', { living_nodes: 0 })
  const fields = fieldsOf(node, 'node_id', 'stale', 'mailbox_listener_alive', 'reconciliation_loop_alive', 'updated_at')
  return looking.evidence(SOURCE, '/delivery/nodes', fields)
}

function commandEvidence(looking: Looking, command: DeliveryCommand): Evidence {
  const { state, overdue, admission, attempts } = command
  const { at, deadline_at, scope_id } = admission
  return looking.evidence(SOURCE, requestOf('/delivery/status', addressOf(command)), {
    state,
    overdue,
    admitted_at: at,
    deadline_at,
    scope_id,
    attempts: attempts.count,
  })
}

/** What names the command: its scope in the place of what nobody knows of it, which alone tells it from others. */
const subjectOf = ({ user_id, client_id, command_id, admission }: DeliveryCommand): Record<string, string> => ({
  ...(user_id !== null && { user_id }),
  ...(client_id !== null && { client_id }),
  ...((user_id === null || client_id === null) && { scope_id: admission.scope_id }),
  command_id,
})

/** A finding of a command, named as its status is asked for. */
const ofCommand = (kind: FindingKind, command: DeliveryCommand, since: string | null, evidence: Evidence[]): Finding =>
  finding(kind, subjectOf(command), since, evidence, addressOf(command))

/** Of a command that is for no client that anybody knows, none can be missing. */
const isForClient = (command: DeliveryCommand): command is DeliveryCommand & ClientOfUser =>
  command.user_id !== null && command.client_id !== null

export const COMMANDS_OVERDUE = along<DeliveryCommand>({
  kinds: ['command_overdue'],
  needs: ['delivery_commands'],
  source: SOURCE,
  entry: DeliveryCommand,
  list: ({ delivery }, page, ask) => delivery.listCommands?.({ overdue: true }, page, ask),
  async find(commands, looking) {
    const node = await latestOf(looking)
    return commands.flatMap((command) => {
      const { deadline_at } = command.admission
      if (!command.overdue || deadline_at === null || (node && !hasPassed(node, deadline_at))) return []
      const evidence = [commandEvidence(looking, command), nodeEvidence(looking, node)]
      return [ofCommand('command_overdue', command, deadline_at, evidence)]
    })
  },
})

/** Clients that have a command in hand, behind which others wait their turn; `null` where there are more than a page. */
async function busyClients(looking: Looking): Promise<Set<string> | null> {
  const list = async (page: PageQuery, ask: Ask) => {
    const listed = await looking.inspectors.delivery.listCommands?.({ state: 'attempted' }, page, ask)
    return listed ?? { items: [], next_cursor: null, has_more: false }
  }
  const { records, next } = await looking.pageWith(SOURCE, { entry: DeliveryCommand, list }, PAGE_MAX)
  if (next !== null) looking.cut.add(SOURCE)
  return next === null ? new Set(records.map((command) => JSON.stringify([command.user_id, command.client_id]))) : null
}

export const COMMANDS_WAITING = along<DeliveryCommand>({
  kinds: ['command_waiting_though_listened', 'command_waiting_for_nobody'],
  needs: ['delivery_commands', 'registry'],
  source: SOURCE,
  entry: DeliveryCommand,
  list: ({ delivery }, page, ask) => delivery.listCommands?.({ state: 'waiting' }, page, ask),
  async find(all, looking) {
    const commands = all.filter(isForClient).filter(({ state, overdue }) => state === 'waiting' && !overdue)
    if (commands.length === 0) return []
    const holderOf = await looking.holders(commands)
    const node = await latestOf(looking, ({ mailbox_listener_alive }) => mailbox_listener_alive !== false)
    const busy = commands.some((command) => holderOf(command) !== null) ? await busyClients(looking) : null
    return commands.flatMap((command): Finding[] => {
      const { user_id, client_id, admission } = command
      const holder = holderOf(command)
      const evidence = [commandEvidence(looking, command), holderEvidence(looking, command, holder)]
      if (holder === null) return [ofCommand('command_waiting_for_nobody', command, admission.at, evidence)]
      if (!node || !busy || busy.has(JSON.stringify([user_id, client_id])) || !hasPassed(node, admission.at)) return []
      return [
        ofCommand('command_waiting_though_listened', command, admission.at, [...evidence, nodeEvidence(looking, node)]),
      ]
    })
  },
})

/** Reasons for another attempt that concern the client or its connection. Others concern a node. */
const UNANSWERED = new Set<RecoveryReason | null>(['ack_timeout', 'deliver_timed_out', 'deliver_rejected'])

const isUnanswered = ({ state, overdue, acknowledgement, recovery }: DeliveryCommand) =>
  state === 'attempted' && !overdue && acknowledgement.state === 'none' && UNANSWERED.has(recovery.reason)

export const COMMANDS_UNACKNOWLEDGED = along<DeliveryCommand>({
  kinds: ['command_not_acknowledged'],
  needs: ['delivery_commands', 'registry'],
  source: SOURCE,
  entry: DeliveryCommand,
  list: ({ delivery }, page, ask) => delivery.listCommands?.({ state: 'attempted' }, page, ask),
  async find(all, looking) {
    const commands = all.filter(isForClient).filter(isUnanswered)
    if (commands.length === 0) return []
    const holderOf = await looking.holders(commands)
    return commands.flatMap((command): Finding[] => {
      const holder = holderOf(command)
      if (holder === null) return []
      const { attempts, acknowledgement, recovery } = command
      const seen = commandEvidence(looking, command)
      const fields = {
        ...seen.fields,
        ...fieldsOf(attempts, 'confirmed', 'last_at', 'last_node_id', 'last_outcome'),
        acknowledgement: acknowledgement.state,
        recoveries: recovery.count,
        recovery_reason: recovery.reason,
      }
      // Of several timeouts, the record keeps only the latest.
      const since = recovery.count === 1 ? recovery.last_at : null
      const evidence = [{ ...seen, fields }, holderEvidence(looking, command, holder)]
      return [ofCommand('command_not_acknowledged', command, since, evidence)]
    })
  },
})

export const RESERVATIONS_WITHOUT_COMMAND = along<DeliveryTenant>({
  kinds: ['reservation_without_command'],
  needs: ['delivery', 'delivery_commands'],
  source: SOURCE,
  entry: DeliveryTenant,
  list: ({ delivery }, page, ask) => delivery.listTenants(page, ask),
  async find(tenants, looking) {
    const now = looking.view.now()
    const late = tenants.filter(
      ({ reserved_commands, oldest_deadline_at }) =>
        reserved_commands > 0 && oldest_deadline_at !== null && Date.parse(oldest_deadline_at) <= now,
    )
    if (late.length === 0) return []
    const list = async (page: PageQuery, ask: Ask) =>
      (await looking.inspectors.delivery.listCommands?.({ overdue: true }, page, ask)) ?? NOTHING
    const { records, next } = await looking.pageWith(SOURCE, { entry: DeliveryCommand, list }, PAGE_MAX)
    // Of the scopes beyond that page nothing is known.
    if (next !== null) {
      looking.cut.add(SOURCE)
      return []
    }
    const scopes = new Set(records.map(({ admission }) => admission.scope_id))
    return late
      .filter(({ scope_id }) => !scopes.has(scope_id))
      .map((tenant) => {
        const { scope_id, oldest_deadline_at } = tenant
        return finding('reservation_without_command', { scope_id }, oldest_deadline_at, [
          looking.evidence(
            SOURCE,
            requestOf('/delivery/tenants', { scope_id }),
            fieldsOf(tenant, 'reserved_commands', 'oldest_deadline_at'),
          ),
          looking.evidence(SOURCE, requestOf('/delivery/commands', { scope_id, overdue: 'true' }), { commands: 0 }),
        ])
      })
  },
})

const NOTHING = { items: [], next_cursor: null, has_more: false }

/** Silent nodes of a page whose connections are looked for: one question each. */
const SILENT_MAX = 20

/** A connection that is recorded as connected at `node_id`. */
async function connectionAt(node_id: string, looking: Looking): Promise<Connection | undefined> {
  const { registry } = looking.inspectors
  if (!registry) return undefined
  const list = (page: PageQuery, ask: Ask) => registry.listConnections({ node_id, status: 'connected' }, page, ask)
  const { records } = await looking.pageWith('registry', { entry: Connection, list }, 1)
  // A registry that does not know the filter lists anybody's.
  return records.find((connection) => connection.node_id === node_id && connection.status === 'connected')
}

export const SILENT_NODES = along<DeliveryNode>({
  kinds: ['silent_node_holds'],
  needs: ['delivery'],
  source: SOURCE,
  entry: DeliveryNode,
  list: ({ delivery }, page, ask) => delivery.listNodes(page, ask),
  async find(nodes, looking) {
    const silent = nodes.filter(({ stale }) => stale === true)
    if (silent.length > SILENT_MAX) looking.cut.add(SOURCE)
    const found = await Promise.all(silent.slice(0, SILENT_MAX).map((node) => ofSilent(node, looking)))
    return found.flat()
  },
})

async function ofSilent(node: DeliveryNode, looking: Looking): Promise<Finding[]> {
  const { node_id, connection_waiters, active_drainers, updated_at } = node
  const held = await connectionAt(node_id, looking)
  if (!held && !connection_waiters && !active_drainers) return []
  const evidence = [
    looking.evidence(
      SOURCE,
      '/delivery/nodes',
      fieldsOf(node, 'stale', 'updated_at', 'connection_waiters', 'active_drainers'),
    ),
  ]
  if (held)
    evidence.push(
      looking.evidence(
        'registry',
        requestOf('/connections', { node_id, status: 'connected' }),
        fieldsOf(held, 'connection_id', 'user_id', 'client_id', 'last_seen_at'),
      ),
    )
  return [finding('silent_node_holds', { node_id }, updated_at, evidence)]
}
