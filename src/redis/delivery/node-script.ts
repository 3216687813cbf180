/** A script of the dispatcher: what each is given by its node, and what each answers beside its own answer. */
import type { Arguments } from '../store/arguments.js'
import { listOf, type StoreReply, strings } from '../store/reply.js'
import { defineScript, type Script, type ScriptOptions } from '../store/script.js'
import { DELIVERY_MOVES } from './script-moves.js'

const NODE_ARGS = ['incarnation', 'retention_ms', 'max_kept', 'patience_ms'] as const

/** `incarnation` is this life of the node; most retained records of a kind, and the patience for an attempt. */
export type NodeArguments = Arguments<(typeof NODE_ARGS)[number]>

/** What a script answers its node. */
export interface NodeReply<Answer> {
  now: number
  answer: Answer
  /** What this node is told about its own mailboxes and attempts. */
  notices: string[]
  /** What was counted, each as its kind and name. */
  counted: string[]
  /** Reservations that have ended in another shard than their command's. */
  released: { shard: number; scope: string; ref: string }[]
}

export function deliveryScript<Names extends string, Answer, Rest extends string = never>(
  name: string,
  { args, answer, ...options }: ScriptOptions<Names, Answer, Rest>,
  lua: string,
): Script<NodeArguments & Arguments<Names, Rest>, NodeReply<Answer>> {
  const read = (reply: StoreReply): NodeReply<Answer> => {
    const [now, own = null, notices = null, counted = null, released] = listOf(reply)
    return {
      now: Number(now),
      answer: answer(own),
      notices: strings(notices),
      counted: strings(counted),
      released: listOf(released).map((one) => {
        const [shard, scope, ref] = listOf(one)
        return { shard: Number(shard), scope: String(scope), ref: String(ref) }
      }),
    }
  }
  return defineScript(name, { ...options, args: [...NODE_ARGS, ...args], answer: read }, `${DELIVERY_MOVES}${lua}`)
}
