/**
 * A script of the dispatcher: a node runs it for several calls at once, and each is as if it had been run alone. What one of them
 * meets is that one's.
 */
import type { Arguments } from '../store/arguments.js'
import { pathOf } from '../store/keys.js'
import { listOf, type StoreReply, strings } from '../store/reply.js'
import { defineScript, type Script, type ScriptOptions } from '../store/script.js'
import { withFields } from './format.js'
import { type ClaimReply, DELIVERY_CLAIMS, readClaim, SEPARATOR } from './script-claims.js'
import { DELIVERY_MOVES } from './script-moves.js'

const NODE_ARGS = [
  'incarnation',
  'node',
  'retention_ms',
  'max_kept',
  'patience_ms',
  'max_tracked',
  'max_per_user',
] as const

/** What the keys of a client and of a command end in: a script whose calls name one finds that beside the ids. */
const PATHS = { mailbox: ['user', 'client'], path: ['user', 'client', 'id'] } as const

/**
 * `incarnation` is this life of the `node`; most retained records of a kind, the patience for an attempt, and most commands
 * that are tracked, of all and of a user.
 */
export type NodeArguments = Arguments<(typeof NODE_ARGS)[number]>

/** What a script answers its node. Calls have the numbers from 1. */
export interface NodeReply {
  now: number
  /** By the calls; `null` for one that failed. */
  answers: StoreReply[]
  /** What the store said to calls that failed. */
  failed: Map<number, string>
  /** What claims came to that travelled with calls: none for one that failed. */
  claims: Map<number, ClaimReply>
  /** What this node is told about its own mailboxes and attempts. */
  notices: string[]
  /** What was counted, by its kind and name, and how often. */
  counted: Map<string, number>
  /** Reservations that have ended in another shard than their command's, each with its call. */
  released: { call: number; shard: number; scope: string; ref: string }[]
}

export interface DeliveryScript<Given, Answer> extends Script<NodeArguments & Calls, NodeReply> {
  /** One call, as it travels: one text, since each by itself would cost client and store more than what it says. */
  callOf(given: Given): string
  answerOf(reply: StoreReply): Answer
}

type Calls = Arguments<never, 'given'>

function pairsOf<K, V>(reply: StoreReply | undefined, key: (of: unknown) => K, value: (of: unknown) => V): Map<K, V> {
  const list = listOf(reply)
  const pairs = new Map<K, V>()
  for (let i = 0; i + 1 < list.length; i += 2) pairs.set(key(list[i]), value(list[i + 1]))
  return pairs
}

function read(reply: StoreReply): NodeReply {
  const [now, answers, notices = null, counted, released, failed, claims] = listOf(reply)
  return {
    now: Number(now),
    answers: listOf(answers),
    notices: strings(notices),
    counted: pairsOf(counted, String, Number),
    released: listOf(released).map((one) => {
      const [call, shard, scope, ref] = listOf(one)
      return { call: Number(call), shard: Number(shard), scope: String(scope), ref: String(ref) }
    }),
    failed: pairsOf(failed, Number, String),
    claims: pairsOf(claims, Number, (claim) => readClaim(claim as StoreReply)),
  }
}

/** The arguments of one call as locals. */
function readCall(args: readonly string[]): string {
  const last = args.at(-1)
  if (last === undefined) return ''
  const rest = `local ${last} = string.sub(packed, rest_at)`
  const names = [...args.slice(0, -1), 'rest_at'].join(', ')
  // Each ends with a zero byte, which is the separator: half the cost of a pattern.
  return `  local ${names} = struct.unpack('${'s'.repeat(args.length - 1)}', packed)\n  ${rest}\n`
}

/** What a call of a script that `claims` may bring, '' for nothing: the next claim of the client that it is about. */
const NEXT_CLAIM = 'next_claim'
/** The same as it travels: its number, and the token of its waiter. */
export const nextClaim = (claim: number, token: string) => `${claim} ${token}`

interface DeliveryScriptOptions<Names extends string, Answer, Claims extends boolean>
  extends Omit<ScriptOptions<Names, Answer>, 'rest'> {
  /** Its calls may bring a claim: `NEXT_CLAIM`. */
  claims?: Claims
  /** Lua functions that it needs beside those of every move: a run defines each anew, which costs more than most calls of one. */
  parts?: readonly string[]
}

/** Lua over the arguments of one call, which answers by `return`. */
export function deliveryScript<Names extends string, Answer, Claims extends boolean = false>(
  name: string,
  { args: own, answer, claims, parts = [], ...options }: DeliveryScriptOptions<Names, Answer, Claims>,
  lua: string,
): DeliveryScript<Arguments<Names | (Claims extends true ? typeof NEXT_CLAIM : never)>, Answer> {
  const args: readonly string[] = claims ? [NEXT_CLAIM, ...own] : own
  const paths = Object.entries(PATHS).filter(([, ids]) => ids.every((id) => args.includes(id)))
  const all = [...paths.map(([path]) => path), ...args]
  const script = defineScript(
    name,
    { ...options, args: NODE_ARGS, rest: 'given', answer: read },
    withFields(`local answers, failed, claims = {}, {}, {}
local function fail(n, met)
  if not answers[n] then return end
  answers[n] = false
  failed[#failed + 1] = n
  local said = type(met) == 'table' and met.err or tostring(met)
  -- What Lua itself says begins with a place in the script.
  failed[#failed + 1] = string.find(said, '^%u+ ') and said or 'ERR ' .. said
end
${DELIVERY_MOVES}${claims ? DELIVERY_CLAIMS : ''}${parts.join('')}
local function move(${all.join(', ')})
${lua}
end
local function run(packed)
${readCall(all)}  local answer = move(${all.join(', ')})
${claims ? `  claim_behind(user, client, mailbox, ${NEXT_CLAIM})\n` : ''}  return answer
end
for n = 1, #given do
  number, freed = n, false
  local good, answer = pcall(run, given[n])
  answers[n] = answer
  if not good then fail(n, answer) end
end
write_all()
for _, notice in pairs(calls) do notices[#notices + 1] = notice end
local counts = {}
for entry, times in pairs(counted) do counts[#counts + 1], counts[#counts + 2] = entry, times end
return { now, answers, notices, counts, released, failed, claims }`),
  )
  function callOf(values: Arguments<string>) {
    let text = ''
    for (const [, ids] of paths) text += pathOf(ids.map((id) => String(values[id]))) + SEPARATOR
    for (const [i, arg] of args.entries()) {
      const value = values[arg]
      if (i === args.length - 1) return text + value
      // Ids are checked long before: whoever forgets it must not shift what another argument says.
      if (typeof value === 'string' && value.includes(SEPARATOR)) throw new TypeError(`${arg} holds a separator`)
      text += value + SEPARATOR
    }
    return text
  }
  return Object.assign(script, { callOf, answerOf: answer })
}
