/** Which families an observer shows, by name. */
import { defineOptions, flag } from '../../internal/contract/options.js'

/** Whether to show each family. One that no host writes to would be shown as empty. */
export const ShownFamilies = defineOptions({
  /** Whether to show connections. @default true */
  connections: flag().default(true),
  /** Whether to show contexts and workers. @default true */
  contexts: flag().default(true),
  /** Whether to show browser windows. @default true */
  browserWindows: flag().default(true),
  /** Whether to show calls. @default true */
  rpc: flag().default(true),
  /** Whether to show retained messages. @default true */
  history: flag().default(true),
  /** Whether to show the deduplicator. @default true */
  deduplicator: flag().default(true),
  /** Whether to show commands and nodes. @default true */
  delivery: flag().default(true),
  /** Whether to show cooperative sites. @default true */
  sites: flag().default(true),
  /** Whether to show sessions of cooperative sites. @default true */
  sessions: flag().default(true),
  /** Whether to show viewer streams of cooperative sites. @default true */
  subscriptions: flag().default(true),
})
