/** Holds the history of a fault campaign against what must be so: object by object, and what is left in the store. */
import { checkCommand } from './faults-command.js'
import { checkTopic } from './faults-events.js'
import { createFence } from './faults-fence.js'
import { type CommandName, callsOf, type Entry, grouped, type Operation, operationsOf } from './faults-history.js'
import { checkAccount, checkMessage, checkStream, type Stream } from './faults-message.js'
import type { Rule, Violation } from './faults-rules.js'

type Of<T extends Entry['type']> = Extract<Entry, { type: T }>

const only = <T extends Entry['type']>(history: readonly Entry[], type: T) =>
  history.filter((entry): entry is Of<T> => entry.type === type)
const nameOf = ({ user_id, client_id, command_id }: CommandName) => `${user_id} ${client_id} ${command_id}`

/** All that is wrong in `history`. */
export function checkHistory(history: readonly Entry[]): Violation[] {
  const operations = operationsOf(history)
  const fence = createFence(operations)
  const violations: Violation[] = []
  const blame = (about: string, rules: readonly Rule[]) => {
    for (const rule of rules) violations.push({ rule, about })
  }
  for (const { op, process, call, end } of operations)
    if (end.type === 'error') blame(`operation ${op}, ${call.what} at ${process}: ${end.message}`, ['error'])

  for (const { node } of only(history, 'died')) blame(`node ${node}`, ['died'])

  // Commands.
  const healedAt = only(history, 'healed')[0]?.at ?? Number.POSITIVE_INFINITY
  const handedOver = grouped(only(history, 'handed_over'), nameOf)
  const statuses = new Map(only(history, 'command').map((entry) => [nameOf(entry), entry.status]))
  const ofCommands = operations.filter(({ call }) => 'command_id' in call)
  const commands = grouped(ofCommands, ({ call }) => nameOf(call as CommandName))
  for (const name of new Set([...commands.keys(), ...handedOver.keys()])) {
    const own = commands.get(name) ?? []
    const command = { operations: own, handedOver: handedOver.get(name) ?? [], status: statuses.get(name) }
    blame(`command ${name}`, checkCommand(command, fence, healedAt))
  }

  // Messages, their streams, and the accounts of users.
  const ingests = callsOf(operations, 'ingest')
  const streams = only(history, 'stream')
  const byStream = new Map(streams.map((stream) => [stream.stream, stream]))
  for (const [stream, own] of grouped(ingests, ({ call }) => call.stream)) {
    const held = byStream.get(stream)
    const messages = grouped(own, ({ call }) => call.message_id)
    for (const [id, all] of messages) blame(`message ${id} of ${stream}`, checkMessage(all, held, fence))
    for (const { message_id } of held?.messages ?? [])
      if (!messages.has(message_id)) blame(`message ${message_id} of ${stream}`, ['there_though_refused'])
    if (held) blame(`stream ${stream}`, checkStream(held, messages))
  }
  const streamsOf = grouped(streams, ({ user_id }) => user_id)
  const ingestsOf = grouped(ingests, ({ call }) => call.user_id)
  for (const account of only(history, 'account')) {
    const { user_id } = account
    blame(`user ${user_id}`, checkAccount(account, streamsOf.get(user_id) ?? [], ingestsOf.get(user_id) ?? []))
  }

  violations.push(...checkTopics(history, operations, byStream), ...checkLeft(history))
  return violations
}

function checkTopics(
  history: readonly Entry[],
  operations: readonly Operation[],
  streams: ReadonlyMap<string, Stream>,
): Violation[] {
  const dead = new Set(only(history, 'fault').flatMap(({ fault, node }) => (fault === 'kill' ? node : [])))
  for (const { node } of only(history, 'died')) dead.add(node)
  const alive = new Set(operations.map(({ process }) => process).filter((process) => !dead.has(process)))
  const told = history.filter((entry): entry is Of<'heard' | 'gap'> => entry.type === 'heard' || entry.type === 'gap')
  const heard = grouped(told, ({ topic }) => topic)
  const ingests = grouped(callsOf(operations, 'ingest'), ({ call }) => call.stream)
  const subscriptions = callsOf(operations, 'subscribe')
  return [...heard.keys()].flatMap((topic) =>
    checkTopic({
      topic,
      alive,
      ingests: ingests.get(topic) ?? [],
      heard: heard.get(topic) ?? [],
      stream: streams.get(topic),
      subscriptions: subscriptions.filter(({ call }) => call.topic === topic),
    }),
  )
}

/** What the store still holds of commands, when all of them have ended. */
function checkLeft(history: readonly Entry[]): Violation[] {
  const [left] = only(history, 'delivery')
  if (!left) return [{ rule: 'unread', about: 'delivery as a whole' }]
  const violations: Violation[] = []
  const { tracked_commands, tenants, shards, now } = left
  if (tracked_commands > 0) violations.push({ rule: 'left_tracked', about: `${tracked_commands} commands` })
  for (const { scope_id, reserved_commands, oldest_deadline_at } of tenants) {
    // Whoever dies between two shards leaves a reservation to its deadline; within one shard there is no between.
    const isAllowed = shards > 1 && oldest_deadline_at !== null && oldest_deadline_at > now
    if (!isAllowed) violations.push({ rule: 'left_reserved', about: `${reserved_commands} of ${scope_id}` })
  }
  const ended = only(history, 'command').filter(
    ({ status }) => status?.admission.state === 'admitted' && status.terminal !== null,
  )
  if (left.ended !== ended.length)
    violations.push({ rule: 'ends_miscounted', about: `${left.ended} listed, ${ended.length} read` })
  return violations
}
