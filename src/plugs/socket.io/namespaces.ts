/** The namespaces that are listened to, held so that those which their server forgets are forgotten. */
import type { FollowedNamespace } from './peer.js'

export interface Namespaces<S> {
  /** @param release Takes the listeners off `namespace`. */
  add(namespace: FollowedNamespace<S>, release: () => void): void
  /** Takes the listeners off all that are there. */
  release(): void
}

/** A server may make a namespace a document and drop it with its last socket, and tells nobody of that: they are held weakly. */
export function createNamespaces<S>(): Namespaces<S> {
  type Held = WeakRef<FollowedNamespace<S>>
  const held = new Set<Held>()
  const releases = new WeakMap<FollowedNamespace<S>, () => void>()
  const dropped = new FinalizationRegistry<Held>((one) => held.delete(one))
  return {
    add(namespace, release) {
      const one = new WeakRef(namespace)
      held.add(one)
      releases.set(namespace, release)
      dropped.register(namespace, one)
    },
    release() {
      for (const one of held) {
        const namespace = one.deref()
        if (namespace) releases.get(namespace)?.()
      }
    },
  }
}
