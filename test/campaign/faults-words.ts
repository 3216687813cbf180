/** What the parent of a fault campaign and its nodes say to each other. */
import type { Answer, Call, CommandName, Failure } from './faults-history.js'

export type ClientKind = 'node-redis' | 'ioredis'

/** What a node is started with. */
export interface NodePlan {
  /** Ports of the store's servers, and those of the link to each. Several are a Cluster. */
  servers: { port: number; link: number }[]
  client: ClientKind
  deploymentId: string
  nodeId: string
  shards: number
}

export interface Order {
  op: number
  call: Call
}

/** Messages from a node: how a call ended, and unsolicited events. */
export type Word =
  | { kind: 'ready' }
  | { kind: 'ended'; op: number; end: { type: 'ok'; answer: Answer } | Failure }
  /** A connection that the registry no longer has. */
  | { kind: 'superseded'; user_id: string; client_id: string; instance_id: string }
  | ({ kind: 'handed_over'; instance_id: string; attempt: number; n: number } & CommandName)
  | { kind: 'heard'; topic: string; epoch: string; seq: number; event_id: string }
  | { kind: 'gap'; topic: string; last_seq: number | null }

/** The one scope whose places are few. */
export const TIGHT_SCOPE = 'tight'
