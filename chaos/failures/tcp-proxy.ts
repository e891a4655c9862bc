import { connect, createServer, type Server, type Socket } from 'node:net'

type Pair = {
  inside: Socket
  outside: Socket
  /** Its request was let through, and its answer will not be. */
  doomed: boolean
}

/** Stands before a server so that a test can cut, refuse, freeze, slow down and half-close its connections. */
export class TcpProxy {
  readonly #target: URL
  readonly #pairs = new Set<Pair>()
  #server: Server | undefined
  #frozen = false
  #toLose = 0
  #losing: RegExp = /(?:)/
  port = 0
  /** Milliseconds by which every chunk is late, each way. */
  delayMs = 0
  /** Answers lost since the start. */
  lost = 0

  constructor(targetUrl: string) {
    this.#target = new URL(targetUrl)
  }

  /** The target's URL with the proxy in the target's place. */
  get url(): string {
    const url = new URL(this.#target)
    url.hostname = '127.0.0.1'
    url.port = String(this.port)
    return url.href
  }

  /** Starts to listen, the second time on the port of the first. */
  async open(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (inside) => this.#join(inside))
    this.#server = server
    await new Promise<void>((resolve, reject) =>
      server.once('error', reject).listen(this.port, '127.0.0.1', resolve),
    )
    const address = server.address()
    if (typeof address === 'object' && address) this.port = address.port
  }

  /** Cuts all connections and refuses new ones. */
  async down(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    const closed = new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
    this.cut()
    await closed
  }

  /** Cuts all connections; new ones are welcome. */
  cut(): void {
    for (const pair of this.#pairs) destroy(pair)
  }

  /** Goes on accepting connections and bytes, and passes nothing on. */
  freeze(): void {
    this.#frozen = true
    for (const pair of this.#pairs) for (const socket of [pair.inside, pair.outside]) socket.pause()
  }

  thaw(): void {
    this.#frozen = false
    for (const pair of this.#pairs) for (const socket of [pair.inside, pair.outside]) socket.resume()
  }

  /** The clients see their connections end; the server does not, until they go away. */
  halfClose(): void {
    for (const { inside } of this.#pairs) inside.end()
  }

  /** Of the next `count` requests that match, the server gets every byte and the client never an answer: a cut. */
  loseAnswers(count: number, matching = /(?:)/): void {
    this.#toLose = count
    this.#losing = matching
  }

  #join(inside: Socket): void {
    const outside = connect({
      port: Number(this.#target.port || 6379),
      host: this.#target.hostname,
      allowHalfOpen: true,
    })
    const pair: Pair = { inside, outside, doomed: false }
    this.#pairs.add(pair)
    this.#relay(pair, inside, outside, (chunk) => {
      if (this.#toLose === 0 || pair.doomed || !this.#losing.test(chunk.toString('latin1'))) return
      this.#toLose--
      pair.doomed = true
    })
    this.#relay(pair, outside, inside, () => {
      if (!pair.doomed) return
      this.lost++
      destroy(pair)
    })
  }

  #relay(pair: Pair, from: Socket, to: Socket, look: (chunk: Buffer) => void): void {
    from.setNoDelay(true)
    const late: (() => void)[] = []
    const inOrder = (work: () => void): void => {
      if (this.delayMs === 0 && late.length === 0) work()
      else {
        late.push(work)
        setTimeout(() => late.shift()?.(), this.delayMs).unref()
      }
    }
    from.on('data', (chunk) => {
      look(chunk)
      inOrder(() => void (to.writable && to.write(chunk)))
    })
    from.on('end', () => inOrder(() => void to.end()))
    from.on('error', () => {})
    from.on('close', () => {
      this.#pairs.delete(pair)
      destroy(pair)
    })
    if (this.#frozen) from.pause()
  }
}

const destroy = ({ inside, outside }: Pair): void => {
  inside.destroy()
  outside.destroy()
}
