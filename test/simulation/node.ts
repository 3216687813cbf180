/** A node: one instance of the library whose platform is the world's. */
import { createHash } from 'node:crypto'
import type { Library } from './bundle.js'
import { EPOCH } from './store.js'
import { DIED, type Happening, type Link, Priority, type World } from './world.js'

type Callback = (...args: unknown[]) => unknown

/** What the library gets instead of its platform's globals. */
export interface SimulatedPlatform {
  setTimeout(run: Callback, ms?: number, ...args: unknown[]): unknown
  setInterval(run: Callback, ms?: number, ...args: unknown[]): unknown
  setImmediate(run: Callback, ...args: unknown[]): unknown
  clearTimeout(timer: unknown): void
  clearInterval(timer: unknown): void
  clearImmediate(timer: unknown): void
  performanceNow(): number
  dateNow(): number
  random(): number
  randomUUID(): string
  getRandomValues(bytes: Uint8Array): Uint8Array
  digest(algorithm: string, bytes: Uint8Array): Promise<ArrayBuffer>
}

/** A node from one start to its death. */
export interface Life {
  readonly number: number
  isDead: boolean
  /** Resolves to `DIED`. */
  readonly died: Promise<typeof DIED>
  die(value: typeof DIED): void
  readonly links: Set<Link>
}

class Timer {
  happening: Happening | undefined
  isLive = true
  unref = () => this
  ref = () => this
  hasRef = () => true
  refresh = () => this;
  [Symbol.toPrimitive] = () => 0
}

const MAX_WAIT = 2 ** 31 - 1

function createLife(number: number): Life {
  let die: Life['die'] = () => {}
  const died = new Promise<typeof DIED>((resolve) => {
    die = resolve
  })
  return { number, isDead: false, died, die, links: new Set() }
}

export class SimulatedNode {
  /** ms that this node's wall clock is ahead of the world. */
  wallOffset = 0
  /** Paused until then while time passes. */
  pausedUntil = 0
  life: Life = createLife(0)
  readonly library: Library

  constructor(
    readonly name: string,
    readonly world: World,
    load: (platform: SimulatedPlatform) => Library,
  ) {
    this.library = load(this.createPlatform())
  }

  /** A new life, without any state of the one before. */
  revive(): Life {
    this.wallOffset = 0
    this.pausedUntil = 0
    this.life = createLife(this.life.number + 1)
    return this.life
  }

  kill(): void {
    const { life } = this
    for (const link of life.links) link.cut('the node died', 0, true)
    life.isDead = true
    this.world.say(() => `${this.name} dies`)
    life.die(DIED)
  }

  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.world.now + ms)
    this.world.say(() => `${this.name} stands still for ${ms} ms`)
  }

  private createPlatform(): SimulatedPlatform {
    const { world } = this
    const startTimer = (run: Callback, ms: unknown, args: unknown[], isRepeated: boolean): Timer => {
      const timer = new Timer()
      const wait = Math.max(1, Math.min(MAX_WAIT, Number(ms) || 0))
      const arm = () => {
        timer.happening = world.after(
          wait,
          this,
          () => {
            if (!timer.isLive) return
            if (isRepeated) arm()
            else timer.isLive = false
            run(...args)
          },
          Priority.first,
        )
      }
      arm()
      return timer
    }
    const clearTimer = (timer: unknown) => {
      if (!(timer instanceof Timer)) return
      timer.isLive = false
      if (timer.happening) timer.happening.isLive = false
    }
    return {
      setTimeout: (run, ms, ...args) => startTimer(run, ms, args, false),
      setInterval: (run, ms, ...args) => startTimer(run, ms, args, true),
      setImmediate: (run, ...args) => startTimer(run, 0, args, false),
      clearTimeout: clearTimer,
      clearInterval: clearTimer,
      clearImmediate: clearTimer,
      performanceNow: () => world.now + 1_000,
      dateNow: () => Math.floor(EPOCH + world.now + this.wallOffset),
      random: () => world.random(),
      randomUUID: () => world.randomUUID(),
      getRandomValues(bytes) {
        for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(world.random() * 256)
        return bytes
      },
      async digest(algorithm, bytes) {
        const digest = createHash(algorithm.replace('-', '').toLowerCase()).update(bytes).digest()
        return digest.buffer.slice(digest.byteOffset, digest.byteOffset + digest.byteLength) as ArrayBuffer
      },
    }
  }
}
