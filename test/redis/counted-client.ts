/** A client that records its commands with their shards, and how often it got some while none was in progress. */
import type { RedisClient } from '../../src/redis/store/client.js'

export interface Counted {
  client: RedisClient
  readonly waves: number
  readonly names: string[]
  /** Most commands that any one shard was sent. */
  readonly mostPerShard: number
  reset(): void
}

export function countCommands(client: RedisClient): Counted {
  const real = client as unknown as { sendCommand(args: string[], options: object): Promise<unknown> }
  let waves = 0
  let under = 0
  let names: string[] = []
  let perShard = new Map<string, number>()
  const counted = Object.create(client, {
    sendCommand: {
      value: async (args: string[], options: object) => {
        if (under++ === 0) waves++
        names.push(args[0] as string)
        const [, shard = '0'] = /\{[^:]*:(\d+)\}/.exec(args.find((arg) => arg.startsWith('relayscope:{')) ?? '') ?? []
        perShard.set(shard, (perShard.get(shard) ?? 0) + 1)
        try {
          return await real.sendCommand.call(client, args, options)
        } finally {
          under--
        }
      },
    },
    isOpen: { get: () => (client as { isOpen: boolean }).isOpen },
    isReady: { get: () => (client as unknown as { isReady: boolean }).isReady },
    on: { value: () => counted },
  })
  return {
    client: counted as RedisClient,
    get waves() {
      return waves
    },
    get names() {
      return names
    },
    get mostPerShard() {
      return Math.max(0, ...perShard.values())
    },
    reset() {
      waves = 0
      names = []
      perShard = new Map()
    },
  }
}
