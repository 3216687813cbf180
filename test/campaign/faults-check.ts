/**
 * Holds the history of a fault campaign to what must be so whatever happened in it. The order in which things may happen is held
 * by `test/simulation/`, which can replay it; here stands what real processes, sockets and clients could break besides.
 */
import {
  type CommandName,
  callsOf,
  type Entry,
  grouped,
  isRefused,
  type Operation,
  operationsOf,
} from './faults-history.js'

type Of<T extends Entry['type']> = Extract<Entry, { type: T }>

const only = <T extends Entry['type']>(history: readonly Entry[], type: T) =>
  history.filter((entry): entry is Of<T> => entry.type === type)
const nameOf = ({ user_id, client_id, command_id }: CommandName) => `command ${user_id} ${client_id} ${command_id}`

/** Returns a sentence for each thing that is wrong. */
export function checkHistory(history: readonly Entry[]): string[] {
  const operations = operationsOf(history)
  return [
    ...only(history, 'died').map(({ node }) => `node ${node} ended by itself`),
    ...operations.flatMap(({ call, process, end }) =>
      end.type === 'error'
        ? [`${call.what} at ${process} failed with an error that is not a refusal: ${end.message}`]
        : [],
    ),
    ...checkCommands(history, operations),
    ...checkMessages(history, operations),
    ...checkEvents(history),
    ...checkLeft(history),
  ]
}

/** Whether an answer says that a call ended its command. */
const hasEnded = ({ call, end }: Operation) =>
  end.type === 'ok' &&
  end.answer === true &&
  (call.what === 'settle' || call.what === 'cancel' || (call.what === 'acknowledge' && call.state === 'refused'))

function checkCommands(history: readonly Entry[], operations: readonly Operation[]): string[] {
  const wrong: string[] = []
  const statuses = new Map(only(history, 'command').map((entry) => [nameOf(entry), entry.status]))
  for (const [name, calls] of grouped(callsOf(operations, 'dispatch'), ({ call }) => nameOf(call))) {
    const status = statuses.get(name)
    const isAdmitted = calls.some(({ end }) => end.type === 'ok' && end.answer.admission === 'admitted')
    if (status === undefined) wrong.push(`${name} was not read at last`)
    else if (status === null && isAdmitted) wrong.push(`${name} was admitted and is nowhere`)
    else if (status && calls.every(isRefused)) wrong.push(`${name} is there, though every attempt was refused`)
    else if (status?.admission.state === 'admitted' && !status.terminal) wrong.push(`${name} has not ended`)
  }
  const ofCommands = operations.filter(({ call }) => 'command_id' in call)
  for (const [name, calls] of grouped(ofCommands, ({ call }) => nameOf(call as CommandName)))
    if (calls.filter(hasEnded).length > 1) wrong.push(`${name} ended twice`)

  const sent = new Map(callsOf(operations, 'dispatch').map(({ call }) => [nameOf(call), call.n]))
  for (const [name, all] of grouped(only(history, 'handed_over'), nameOf)) {
    if (all.some(({ n }) => n !== sent.get(name))) wrong.push(`${name} was delivered with another payload`)
    if (new Set(all.map(({ attempt }) => attempt)).size < all.length) wrong.push(`an attempt of ${name} came twice`)
    const counted = statuses.get(name)?.attempts.count ?? 0
    if (all.some(({ attempt }) => attempt > counted)) wrong.push(`${name} has more attempts than are counted`)
  }
  return wrong
}

function checkMessages(history: readonly Entry[], operations: readonly Operation[]): string[] {
  const wrong: string[] = []
  const ingests = callsOf(operations, 'ingest')
  const streams = only(history, 'stream')
  const retained = new Map(streams.map(({ stream, messages }) => [stream, grouped(messages, (one) => one.message_id)]))
  for (const [name, calls] of grouped(ingests, ({ call }) => `${call.stream} ${call.message_id}`)) {
    const { stream, message_id, n } = (calls[0] as (typeof calls)[number]).call
    const held = retained.get(stream)?.get(message_id) ?? []
    const accepted = calls.flatMap(({ end }) => (end.type === 'ok' ? [end.answer] : []))
    if (accepted.length > 0 && held.length === 0) wrong.push(`message ${name} was accepted and is not there`)
    if (held.length > 0 && calls.every(isRefused))
      wrong.push(`message ${name} is there, though every attempt was refused`)
    if (held.length > 1) wrong.push(`message ${name} is there twice`)
    if (accepted.filter(({ duplicate }) => !duplicate).length > 1) wrong.push(`message ${name} was new twice`)
    if (held.some((one) => one.n !== n)) wrong.push(`message ${name} has another content`)
  }
  for (const { stream, messages, message_count } of streams)
    if (messages.length !== message_count || messages.some(({ sequence }, i) => sequence !== i + 1))
      wrong.push(`the positions of ${stream} have a hole or a repetition`)

  const streamsOf = grouped(streams, ({ user_id }) => user_id)
  for (const { user_id, entries, accepted } of only(history, 'account')) {
    const held = (streamsOf.get(user_id) ?? []).reduce((sum, { messages }) => sum + messages.length, 0)
    if (entries !== held || accepted !== held) wrong.push(`what is counted of ${user_id} is not what is retained`)
  }
  return wrong
}

/** Each event has one position, and a subscriber that missed events received a gap. */
function checkEvents(history: readonly Entry[]): string[] {
  const wrong: string[] = []
  const heard = only(history, 'heard')
  for (const [event, all] of grouped(heard, ({ topic, event_id }) => `${topic} ${event_id}`))
    if (new Set(all.map(({ epoch, seq }) => `${epoch}:${seq}`)).size > 1) wrong.push(`event ${event} has two positions`)
  for (const [place, all] of grouped(heard, ({ topic, epoch, seq }) => `${topic} ${epoch}:${seq}`))
    if (new Set(all.map(({ event_id }) => event_id)).size > 1) wrong.push(`two events are at ${place}`)

  const told = history.filter((entry): entry is Of<'heard' | 'gap'> => entry.type === 'heard' || entry.type === 'gap')
  for (const [reader, all] of grouped(told, ({ process, topic }) => `${process} of ${topic}`)) {
    let last: Of<'heard'> | undefined
    let isTold = false
    for (const one of all) {
      if (one.type === 'heard') {
        const isSameEpoch = last?.epoch === one.epoch
        if (last && isSameEpoch && (isTold ? one.seq <= last.seq : one.seq !== last.seq + 1))
          wrong.push(`${reader} heard ${one.seq} after ${last.seq}, and no gap`)
        if (last && !isSameEpoch && !isTold) wrong.push(`${reader} heard another epoch, and no gap`)
        last = one
      }
      isTold = one.type === 'gap'
    }
  }
  return wrong
}

/** What the store still holds of commands, when all of them have ended. */
function checkLeft(history: readonly Entry[]): string[] {
  const [left] = only(history, 'delivery')
  if (!left) return ['the store was not read at last']
  const wrong: string[] = []
  const { tracked_commands, tenants, shards, now } = left
  if (tracked_commands > 0) wrong.push(`${tracked_commands} commands are left`)
  for (const { scope_id, reserved_commands, oldest_deadline_at } of tenants) {
    // A node that dies between writes to two shards leaves a reservation until its deadline; with one shard the write
    // is atomic.
    const isAllowed = shards > 1 && oldest_deadline_at !== null && oldest_deadline_at > now
    if (!isAllowed) wrong.push(`${reserved_commands} reservations of ${scope_id} are left`)
  }
  return wrong
}
