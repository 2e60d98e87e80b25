! moved_fortran STEPS [FILE]: until rank 0 finds FILE, a ring of mpi_f08 with what a Fortran program keeps over its supersteps: a
! persistent request, a derived type, a user's operation and a Cartesian communicator. Prints "OK fortran STEPS SUM"; the sum of as
! many steps is the same wherever its ranks were moved meanwhile.
module work
  use mpi_f08
  implicit none
contains
  subroutine largest_magnitude(invec, inoutvec, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: invec, inoutvec
    integer :: length
    type(MPI_Datatype) :: datatype
    real(8), pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [length])
    call c_f_pointer(inoutvec, b, [length])
    where (abs(a) > abs(b)) b = a
  end subroutine
end module

program moved_fortran
  use work
  implicit none
  integer, parameter :: n = 4096
  integer :: rank, size, left, right, step, steps, i
  real(8) :: mine(n), halo(2), extreme, total
  character(len=256) :: argument
  logical :: found
  type(MPI_Comm) :: ring
  type(MPI_Request) :: requests(2)
  type(MPI_Op) :: magnitude
  type(MPI_Datatype) :: pair

  call MPI_Init()
  call get_command_argument(1, argument)
  read (argument, *) steps
  call get_command_argument(2, argument)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [size], [.true.], .false., ring)
  call MPI_Comm_rank(ring, rank)
  call MPI_Cart_shift(ring, 0, 1, left, right)
  call MPI_Type_contiguous(2, MPI_REAL8, pair)
  call MPI_Type_commit(pair)
  call MPI_Op_create(largest_magnitude, .true., magnitude)
  mine = [(sin(real(i + n * rank, 8)), i = 1, n)]
  call MPI_Send_init(mine(n - 1), 1, pair, right, 7, ring, requests(1))
  call MPI_Recv_init(halo, 1, pair, left, 7, ring, requests(2))
  do step = 1, steps
    found = .false.
    if (rank == 0 .and. argument /= '') inquire (file=trim(argument), exist=found)
    call MPI_Bcast(found, 1, MPI_LOGICAL, 0, ring)
    if (found) exit
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    do i = 1, 20
      mine(1) = mine(1) + 0.25d0 * (halo(1) + halo(2) - 2 * mine(1))
      mine(2:n) = mine(2:n) + 0.25d0 * (mine(1:n - 1) - mine(2:n))
    end do
    call MPI_Allreduce(mine(n), extreme, 1, MPI_REAL8, magnitude, ring)
    mine(n) = mine(n) + 1d-3 * extreme
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  call MPI_Reduce(sum(mine), total, 1, MPI_REAL8, MPI_SUM, 0, ring)
  if (rank == 0) print '(a, i0, a, z16.16)', 'OK fortran ', step - 1, ' ', total
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))
  call MPI_Op_free(magnitude)
  call MPI_Type_free(pair)
  call MPI_Comm_free(ring)
  call MPI_Finalize()
end program
