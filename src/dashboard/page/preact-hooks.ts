/** The four hooks that the page uses, as in `preact/hooks`, in a third of its size: no effects after a paint, no error boundaries. */
import { type Component, options } from 'preact'

interface Hook {
  value?: unknown
  inputs?: readonly unknown[] | undefined
  /** What an effect returned. */
  end?: unknown
}

/** Names as Preact publishes them for its own hooks. */
interface Host extends Component {
  /** Called once what was rendered is in the document. */
  __h: (() => void)[]
  hooks?: Hook[]
}
interface Node {
  __c?: Host
}
const callbacks = options as { __r?: (node: Node) => void; unmount?: (node: Node) => void }

let host: Host
let index = 0

callbacks.__r = ({ __c }) => {
  host = __c as Host
  index = 0
}

const end = (hook: Hook) => typeof hook.end === 'function' && hook.end()

callbacks.unmount = ({ __c }) => __c?.hooks?.forEach(end)

function nextHook(): Hook {
  host.hooks ??= []
  const at = index++
  host.hooks[at] ??= {}
  return host.hooks[at]
}

/** Whether the inputs of a hook are others than when it was rendered last; keeps them. Without inputs they always are. */
function takeInputs(hook: Hook, inputs: readonly unknown[] | undefined): boolean {
  const before = hook.inputs
  hook.inputs = inputs
  return !before || !inputs || inputs.some((input, i) => !Object.is(input, before[i]))
}

export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T {
  const hook = nextHook()
  if (takeInputs(hook, inputs)) hook.value = make()
  return hook.value as T
}

export const useRef = <T>(value: T | null): { current: T | null } => useMemo(() => ({ current: value }), [])

export function useState<T>(first: T | (() => T)): [T, (value: T) => void] {
  const own = host
  const cell = useMemo(() => {
    const cell: [T, (value: T) => void] = [
      first instanceof Function ? first() : first,
      (value) => {
        if (Object.is(cell[0], value)) return
        cell[0] = value
        own.setState({})
      },
    ]
    return cell
  }, [])
  return [...cell]
}

/** Calls `act` once what is rendered is in the document; what it returns is called before the next time, and at the end. */
// biome-ignore lint/suspicious/noConfusingVoidType: an effect may return nothing
export function useLayoutEffect(act: () => void | (() => void), inputs?: readonly unknown[]): void {
  const hook = nextHook()
  if (!takeInputs(hook, inputs)) return
  host.__h.push(() => {
    end(hook)
    hook.end = act()
  })
}
