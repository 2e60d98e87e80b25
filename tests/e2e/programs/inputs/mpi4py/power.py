"""The greatest eigenvalue of a dense matrix by power iteration, with much of what mpi4py offers."""
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
n = 1200
rows = n // size
seeds = world.scatter([numpy.random.default_rng(i).integers(1 << 30) for i in range(size)] if rank == 0 else None)
own = numpy.random.default_rng(seeds).random((rows, n))
x = numpy.ones(n)
half = world.Split(rank % 2, rank)
largest = MPI.Op.Create(lambda a, b, _: max(a, b))
cart = world.Create_cart([size], [True])
before, after = cart.Shift(0, 1)
window = MPI.Win.Allocate(8 * n, 8, comm=world)
with open("/data/state", "ab"):
    pass
file = MPI.File.Open(world, "/data/state", MPI.MODE_RDWR | MPI.MODE_CREATE)
file.Set_view(8 * rows * rank, MPI.DOUBLE)
for step in range(3000):
    mine = own @ x
    world.Allgather(mine, x)
    norm = numpy.sqrt(world.allreduce(float(mine @ mine)))
    x /= norm
    if step % 250 == 0:
        partner = numpy.empty(rows)
        cart.Sendrecv(mine, after, recvbuf=partner, source=before)
        window.Fence()
        window.Put(mine, (rank + 1) % size)
        window.Fence()
        put = numpy.frombuffer(window.tomemory(), "d")[:rows]
        file.Write_at_all(0, mine)
        back = numpy.empty(rows)
        file.Read_at_all(0, back)
        top = world.allreduce(float(mine.max()), largest)
        texts = world.gather({"rank": rank, "half": half.size, "sums": (partner.sum(), put.sum(), back.sum())})
        if rank == 0:
            print(step, repr(norm), top, texts, flush=True)
file.Close()
window.Free()
