/** What happened in a history: all that the oracle may look at. */
import type { Config, Fault } from './config.js'
import type { Life } from './node.js'

// biome-ignore lint/suspicious/noExplicitAny: values of every facility and bodies of every route pass through here
export type Any = any

/** One call of a facility or a route by an actor. */
export interface Operation {
  /** Its place among all operations. */
  i: number
  what: string
  node: string
  /** The life of the node that it was made in. */
  life: number
  /** When it was called, and when it returned; `Infinity` until then. */
  call: number
  ret: number
  /** `died`: its node died first. `error`: it threw what no document names. */
  state: 'open' | 'ok' | 'died' | 'refused' | 'error' | 'unsent'
  value?: Any
  code?: string
  outcome?: string
  error?: Any
  /** When the last of a dead node's writes can have run. */
  diedAt?: number
  user_id?: string
  client_id?: string
  instance_id?: string
  connection_id?: string
  // What else the operation was called with, by its kind.
  [detail: string]: Any
}

/** A command handed to a client. */
export interface Handover {
  user_id: string
  client_id: string
  instance_id: string
  command_id: string
  attempt: number
  action: string
  payload: string
  at: number
  node: string
  plan: string
  /** When `deliver` resolved. */
  done: number
}

/** What one subscriber of the event bus heard. */
export interface Heard {
  number: number
  topic: string
  node: string
  subscription: Any
  begin: { epoch: string; seq: number }
  isPrepared: boolean
  items: { seq?: number; id?: string; gap?: Any; at: number; epoch: string }[]
  final?: { epoch: string; seq: number; pending: number }
  isOpenAtEnd: boolean
  hasDied: boolean
}

/** What one viewer read from its event stream. */
export interface Viewer {
  number: number
  session_id: string
  topic: string
  node: string
  resume: string | null
  frames: { event: string; id?: string; data: Any; at: number }[]
}

/** An answer of the diagnostics router. */
export interface Answer {
  path: string
  from: number
  to: number
  status: number
  body: Any
}

export interface Probe {
  isReady: boolean
  command_id: string
  commands: string[]
  operation?: Operation
}

/** The last answers of a world in which nothing happens any more. */
export interface Reading {
  summary: Answer
  tenants: Answer
  rpc: Answer
  nodes: Answer
  messages: Map<string, Answer>
  statuses: Map<string, Answer>
}

export interface Violation {
  rule: string
  about: string
  at: number
}

export interface History {
  config: Config
  userIds: readonly string[]
  operations: Operation[]
  handovers: Handover[]
  heard: Heard[]
  viewers: Viewer[]
  /** Runs of the application's action. */
  runs: { key: string; at: number }[]
  lives: { node: string; number: number; to: number; life: Life }[]
  pauses: { node: string; from: number; to: number }[]
  faults: { fault: Fault; node: string; at: number }[]
  /** Moments at which the store lost writes. */
  losses: number[]
  hasClockSteps: boolean
  wasFull: boolean
  /** Errors that the library reported to its host. */
  reported: { node: string; message: string; stack: string | undefined }[]
  probes: Probe[]
  reading: Reading | null
  /** Whether every actor came to its end. */
  hasFinished: boolean
  /** From when on nothing goes wrong. */
  calmFrom: number
  /** When everything was over. */
  quietAt: number
  /** Keys that are left in the store when everything should be forgotten, with type and size. */
  left: string[] | null
  violations: Violation[]
}

export type Violate = (rule: string, about: string) => void

export const topicOf = (userId: string): string => `users/${userId}/sites/site-${userId}/events`
export const notesOf = (userId: string): string => `users/${userId}/notes`
export const siteOf = (userId: string): string => `site-${userId}`
