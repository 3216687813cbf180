/** Named channels of `node:diagnostics_channel`, on runtimes that have it. */

/** A named channel. `publish` does not throw: the runtime reports an error of a subscriber as uncaught. */
export interface Channel<Message extends object> {
  /** Whether a subscriber receives what is published. Check it before a message is made. */
  readonly hasSubscribers: boolean
  publish(message: Message): void
}

type OfRuntime = { channel(name: string): Channel<object> }

/** Not an import: modules that run outside Node must load nothing of it. */
function loadChannels(): OfRuntime | undefined {
  try {
    return globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')
  } catch {
    return undefined
  }
}

const channels = loadChannels()

const NONE: Channel<object> = { hasSubscribers: false, publish() {} }

/** Returns the channel with that name; without `node:diagnostics_channel` it never has subscribers. */
export const createChannel = <Message extends object>(name: string): Channel<Message> => channels?.channel(name) ?? NONE
